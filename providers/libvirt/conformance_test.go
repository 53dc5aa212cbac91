package libvirt_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/ssh"

	"vmctl/internal/sshx/sshtest"
	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/providers/providertest"
)

// The same suite runs on real QEMU in acceptance/provider.
func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		New: func(t *testing.T) *providertest.World { return newLab(t).world() },
	})
}

// world returns the lab as a world for the conformance suite.
func (l *lab) world() *providertest.World {
	host := libvirt.Host{UID: 1000, Proc: l.proc, Getenv: func(string) string { return "/home/me" }}
	guests := map[string]*guestOf{}
	l.Booting = func(name, uuid string) uint16 {
		guests[name] = &guestOf{TB: l.t}
		server := l.server(uuid)
		server.Authorized = l.letsIn(uuid)
		return uint16(server.Start(guests[name]))
	}
	l.Ended = func(name string) { guests[name].end() }
	l.t.Cleanup(func() {
		for _, g := range guests {
			g.end()
		}
	})
	return &providertest.World{
		Type: libvirt.TypeOfFake(host, l.Fake), Settings: l.settings, Want: vm(map[string]cty.Value{"port_forward": none}), Traces: l.traces,
		Policy: policy(map[string]cty.Value{
			"ssh": cty.ObjectVal(map[string]cty.Value{"wait": cty.True, "wait_timeout": cty.NumberIntVal(60)}),
		}),
		Edits: []providertest.Edit{
			{Path: "memory", Value: cty.NumberIntVal(320 << 20)},
			{Path: "cpus", Value: cty.NumberIntVal(2)},
			{Path: "accel", Value: cty.StringVal("auto")},
			{Path: "port_forward", Value: forwards("auto")},
		},
		Foreign: func(name string) func() string {
			l.Put(otherID, func(d *libvirt.FakeDomain) {
				d.Name, d.Configured = name, "<domain type='qemu'><name>"+name+"</name><uuid>"+otherID+"</uuid></domain>"
			})
			return func() string { return strings.Join(l.Shown(), "\n") }
		},
		Copy: func(o providers.Object) string {
			l.Copy(string(o.ID), otherID, o.Name+"-copy")
			return o.Name + "-copy"
		},
		Cut: func(*providertest.World) {
			l.Down = libvirt.ErrLibvirt("Failed to connect socket to '/run/libvirt-sock'")
		},
		Kill:   func(o providers.Object) { l.End(string(o.ID)) },
		Deafen: func(w *providertest.World) { l.Deaf, w.Policy = true, deafened(w.Policy) },
		Stick:  func(*providertest.World) { l.Deaf, l.Stuck = true, true },
		Blind:  func(o providers.Object) { l.Unreadable[o.Name] = errors.New("the disk of libvirt is broken") },
		Disks:  l.disks(), Effects: l.effects(),
	}
}

const poolName = "vmctl-lab-" + lineage

// disks returns the disks of the lab for the conformance suite.
func (l *lab) disks() providertest.Disks {
	file := func(o providers.Object) string { return filepath.Base(o.Attrs.GetAttr("path").AsString()) }
	return providertest.Disks{
		Want: disk(8<<20, "qcow2"), Policy: policy(nil),
		Foreign: func(name string) (string, func() string) {
			l.PutPool(poolName, libvirt.FakePool{Type: "dir", Path: filepath.Join(l.settings.Dir, "pool"), Active: true})
			l.PutVolume(poolName, libvirt.FakeVolume{Name: name + ".qcow2", Format: "qcow2", Capacity: 8 << 20})
			return poolName + "/" + name + ".qcow2", func() string { return l.Contents() + string(l.Volume(poolName, name+".qcow2")) }
		},
		Attach: func(vm string, o providers.Object) {
			l.Put(otherID, func(d *libvirt.FakeDomain) {
				d.Name, d.Configured = vm, "<domain type='qemu'><name>"+vm+"</name><uuid>"+otherID+"</uuid><devices><disk type='file' device='disk'><source file='"+
					o.Attrs.GetAttr("path").AsString()+"'/><target dev='vda' bus='virtio'/></disk></devices></domain>"
			})
		},
		Fill:   func(o providers.Object) { l.PutFile(poolName, file(o), []byte("filled")) },
		Filled: func(o providers.Object) bool { return string(l.Volume(poolName, file(o))) == "filled" },
		Halve:  func(o providers.Object) { l.DropVolume(poolName, file(o)) },
	}
}

// disk returns the attributes of a disk in a spec.
func disk(size int64, format string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"name": null, "size": cty.NumberIntVal(size), "format": cty.StringVal(format), "fs_type": null,
	})
}

var none = cty.ListValEmpty(forwards("auto").Type().ElementType())

// deafened returns the policy with waits to stop that are over at once.
func deafened(policy cty.Value) cty.Value {
	m := policy.AsValueMap()
	m["stop"] = instantly(cty.True).GetAttr("stop")
	return cty.ObjectVal(m)
}

// guestOf is a testing.TB whose cleanups run when its fake domain ends, not when the test
// does.
type guestOf struct {
	testing.TB
	ends []func()
}

// Cleanup registers f for the end of the guest.
func (g *guestOf) Cleanup(f func()) { g.ends = append(g.ends, f) }

func (g *guestOf) end() {
	for _, f := range g.ends {
		f()
	}
	g.ends = nil
}

// server returns an SSH server that knows the keys that vmctl gave to a vm.
func (l *lab) server(id string) sshtest.Server {
	l.t.Helper()
	keys := filepath.Join(l.dir, "data/keys", id)
	host, err := ssh.ParsePrivateKey([]byte(readFile(l.t, filepath.Join(keys, "ssh_host_ed25519_key"))))
	if err != nil {
		l.t.Fatal(err)
	}
	s := sshtest.Server{HostKey: host}
	if line, err := os.ReadFile(filepath.Join(keys, "id_ed25519.pub")); err == nil { // else the spec names the key
		s.Authorized = publicKey(l.t, line)
	}
	return s
}

func publicKey(t testing.TB, line []byte) ssh.PublicKey {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// traces lists the domains, volumes and files of the lab, without a lock file, which stays
// for good.
func (l *lab) traces() []string {
	l.t.Helper()
	all := append(slices.Concat(l.Shown(), l.ShownNetworks()), l.Contents())
	err := filepath.WalkDir(filepath.Join(l.dir, "data"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && (d.IsDir() || d.Name() == "keys.lock") {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		all = append(all, fmt.Sprintf("%s %x", path, sha256.Sum256(content)))
		return err
	})
	if err != nil {
		l.t.Error(err)
	}
	return all
}
