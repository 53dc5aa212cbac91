//go:build cgo && libvirt_dlopen && linux

package provider_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/providers/providertest"
)

// TestConformance runs the suite that sim passes on real QEMU, each demand in a
// project of its own on the test user's libvirt.
func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Harness{New: func(t *testing.T) *providertest.World {
		t.Parallel()
		sum := sha256.Sum256([]byte(t.Name()))
		h := newHouse(t, fmt.Sprintf("c%x", sum[:3]))
		h.settings.Project.ID = fmt.Sprintf("%x", sum[3:8])
		t.Cleanup(h.clear)
		return h.world()
	}})
}

func (h *house) world() *providertest.World {
	v := h.vm("dev")
	v.want["port_forward"] = cty.ListValEmpty(forwards("auto").Type().ElementType())
	v.want["accel"] = cty.StringVal("tcg")
	return &providertest.World{
		Type: libvirt.Type(libvirt.Host{UID: os.Getuid(), Getenv: os.Getenv}), Settings: h.settings,
		Want: cty.ObjectVal(v.want), Policy: cty.ObjectVal(v.policy), Traces: h.traces,
		Edits: []providertest.Edit{
			{Path: "memory", Value: cty.NumberIntVal(320 << 20)},
			{Path: "cpus", Value: cty.NumberIntVal(2)},
			{Path: "port_forward", Value: forwards("auto")},
		},
		Foreign: h.foreign,
		Copy: func(o providers.Object) string {
			name := o.Name + "-copy"
			xml := h.virsh("dumpxml", "--inactive", o.Name)
			xml = strings.Replace(xml, "<uuid>"+string(o.ID)+"</uuid>", "", 1)
			h.define(strings.Replace(xml, "<name>"+o.Name+"<", "<name>"+name+"<", 1))
			return name
		},
		Cut: func(w *providertest.World) {
			w.Settings.Attrs = cty.ObjectVal(map[string]cty.Value{
				"uri": cty.StringVal("qemu+unix:///session?socket=/nowhere"), "pool": cty.NullVal(cty.String),
			})
		},
		Kill: func(o providers.Object) {
			if err := syscall.Kill(h.processOf(o.ID), syscall.SIGKILL); err != nil {
				h.t.Fatal(err)
			}
			h.await("libvirt says that a killed VM is off", func() bool { return h.virsh("domstate", o.Name) == "shut off" }) // it learns of it from a closed socket
		},
		Deafen: func(w *providertest.World) {
			v.cmdline("vmctl.deaf=1")
			v.policy["stop"] = cty.ObjectVal(map[string]cty.Value{"grace": cty.NumberIntVal(1), "force": cty.True, "force_wait": cty.NumberIntVal(20)})
			w.Want, w.Policy = cty.ObjectVal(v.want), cty.ObjectVal(v.policy)
		},
		// libxml2 takes more names than Go's parser does (XML 1.0, fifth edition).
		Blind: func(o providers.Object) {
			h.virsh("metadata", o.Name, "--uri", "urn:somebody", "--key", "some", "--set", "<ȡ/>", "--config")
		},
		Disks: h.disks(v), Effects: h.effects(),
	}
}

// disks joins the demands on disks.
func (h *house) disks(v *vm) providertest.Disks {
	own := "vmctl-" + h.settings.Project.Name + "-" + h.settings.Project.ID
	folder := filepath.Join(h.settings.Dir, "pool")
	path := func(o providers.Object) string { return o.Attrs.GetAttr("path").AsString() }
	return providertest.Disks{
		Want: cty.ObjectVal(map[string]cty.Value{
			"name": cty.NullVal(cty.String), "size": cty.NumberIntVal(8 << 20), "format": cty.StringVal("qcow2"), "fs_type": cty.NullVal(cty.String),
		}),
		Policy: cty.ObjectVal(v.policy),
		Foreign: func(name string) (string, func() string) {
			if err := os.MkdirAll(folder, 0o700); err != nil {
				h.t.Fatal(err)
			}
			h.virsh("pool-define-as", own, "dir", "--target", folder)
			h.virsh("pool-start", own)
			h.virsh("vol-create-as", own, name+".qcow2", "8MiB", "--format", "qcow2")
			return filepath.Join(folder, name+".qcow2"), func() string { return strings.Join(h.traces(), "\n") }
		},
		Attach: func(vm string, o providers.Object) {
			h.define("<domain type='qemu'><name>" + vm + "</name><memory unit='MiB'>64</memory><vcpu>1</vcpu><os><type>hvm</type></os><devices>" +
				"<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='" + path(o) + "'/><target dev='vda' bus='virtio'/></disk></devices></domain>")
			h.t.Cleanup(func() { h.virsh("undefine", vm) })
		},
		Fill:   func(o providers.Object) { h.qemuIO("write -P 0x76 512k 4k", path(o)) },
		Filled: func(o providers.Object) bool { return h.qemuIO("read -P 0x76 512k 4k", path(o)) },
		Halve: func(o providers.Object) {
			if err := os.Remove(path(o)); err != nil {
				h.t.Fatal(err)
			}
		},
	}
}

// qemuIO reads or writes a disk that may be in use, as its guest would, and reports
// whether it holds the pattern.
func (h *house) qemuIO(command, path string) bool {
	h.t.Helper()
	args := []string{"-f", "qcow2", "-c", command, path}
	if strings.HasPrefix(command, "read") { // of what may be in use
		args = append([]string{"-r", "-U"}, args...)
	}
	out, err := exec.Command("qemu-io", args...).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "Pattern verification failed") {
		h.t.Fatalf("qemu-io %s: %v: %s", path, err, out)
	}
	return err == nil && !strings.Contains(string(out), "Pattern verification failed")
}

// foreign defines a domain as somebody else would.
func (h *house) foreign(name string) func() string {
	h.t.Helper()
	h.define("<domain type='qemu'><name>" + name + "</name><memory unit='MiB'>64</memory><vcpu>1</vcpu><os><type>hvm</type></os></domain>")
	return func() string { return h.virsh("dumpxml", name) }
}

func (h *house) define(xml string) {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "domain.xml")
	if err := os.WriteFile(file, []byte(xml), 0o600); err != nil {
		h.t.Fatal(err)
	}
	h.virsh("define", file)
}

// processOf is QEMU of a domain.
func (h *house) processOf(id providers.ID) int {
	h.t.Helper()
	for _, pid := range h.processes() {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(args), string(id)) {
			return pid
		}
	}
	h.t.Fatalf("no QEMU runs %s", id)
	return 0
}

// domains are the names of the house's domains.
func (h *house) domains() []string {
	h.t.Helper()
	return slices.DeleteFunc(strings.Fields(h.virsh("list", "--all", "--name")), func(name string) bool {
		return !strings.HasPrefix(name, h.settings.Project.Name+".")
	})
}

// pools are the names of the pools that vmctl made for the house. A name that only ends like it, as
// "inside" does for "side", is of another house on the same libvirt.
func (h *house) pools() []string {
	h.t.Helper()
	return slices.DeleteFunc(strings.Fields(h.virsh("pool-list", "--all", "--name")), func(name string) bool {
		return !strings.HasPrefix(name, "vmctl-"+h.settings.Project.Name+"-")
	})
}

// traces are the domains of the house, their processes and files. What a guest
// writes by itself is left out.
func (h *house) traces() []string {
	h.t.Helper()
	all := []string{}
	for _, name := range h.domains() {
		all = append(all, h.virsh("domstate", "--reason", name)+" "+h.virsh("dumpxml", "--inactive", name))
	}
	for _, pid := range h.processes() {
		all = append(all, fmt.Sprintf("process %d", pid))
	}
	err := filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && (d.IsDir() || d.Name() == "keys.lock") { // which stays for good
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		file := path
		if !consoleLog.MatchString(path) {
			file = fmt.Sprintf("%s %d %s", path, info.Size(), info.ModTime())
		}
		all = append(all, file)
		return nil
	})
	if err != nil {
		h.t.Error(err)
	}
	slices.Sort(all)
	return append(all, h.pools()...)
}

var consoleLog = regexp.MustCompile(`\.console\.log$`)

// clear ends and removes what a demand left in its house.
func (h *house) clear() {
	for _, name := range h.domains() {
		for _, args := range [][]string{{"destroy", name}, {"undefine", name, "--managed-save", "--snapshots-metadata"}} {
			_ = exec.Command("virsh", append([]string{"-q", "-c", "qemu:///session"}, args...)...).Run() //nolint:errcheck // it may be off, or gone
		}
	}
	if pids := h.processes(); len(pids) > 0 {
		h.t.Errorf("processes are left: %v", pids)
	}
}
