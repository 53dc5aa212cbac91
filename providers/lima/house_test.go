//go:build unix

package lima_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/process"
	"vmctl/internal/wsl"
	"vmctl/providers"
	"vmctl/providers/lima"
	"vmctl/providers/providertest"
)

// house is a folder with one Lima home, whose instances are run by stand-ins.
type house struct {
	t    *testing.T
	data string
	home string
	tool string // in the place of vmctl-lima; "": the stand-in
	wsl  wsl.Host
	kvm  string // in the place of /dev/kvm; "": this machine is no Linux

	clock *leapingClock // nil: time passes as it does
}

// newHouse makes a house. At the end of the test it ends all processes in it.
func newHouse(t *testing.T) *house {
	t.Helper()
	data, err := os.MkdirTemp("", "l") //nolint:usetesting // the path of t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, data: data, home: filepath.Join(data, "h")}
	t.Cleanup(func() {
		h.end(context.Background(), h.processes(context.Background())...)
		if err := os.RemoveAll(data); err != nil {
			t.Error(err)
		}
	})
	for i, name := range []string{"one.img", "two.img"} {
		if err := os.WriteFile(filepath.Join(data, name), make([]byte, 512*(i+1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h *house) settings() providers.Settings {
	now := time.Now
	if h.clock != nil {
		now = h.clock.Now
	}
	return providers.Settings{
		Name: "here", Dir: h.home, Files: h.data, Keys: filepath.Join(h.data, "keys"), Now: now,
		Project: providers.Project{Name: "lab", ID: "k7m2qd9x4r"},
		Attrs:   cty.ObjectVal(map[string]cty.Value{"home": cty.NullVal(cty.String)}),
	}
}

func (h *house) limaType() providers.Type { return h.typeFor(h.t) }

func (h *house) typeFor(tb testing.TB) providers.Type {
	tb.Helper()
	tool := h.tool
	if tool == "" {
		var err error
		if tool, err = standIn(); err != nil {
			tb.Fatal(err)
		}
	}
	host := lima.Host{Program: tool, Version: func(string) (string, error) { return "2.2.0", nil }, Getenv: os.Getenv, UID: os.Getuid(), Home: h.data, WSL: h.wsl, KVM: h.kvm}
	if h.clock != nil {
		host.Sleep = h.clock.Sleep
	}
	return lima.Type(host)
}

// leapingClock is a clock on which each wait is over at once.
type leapingClock struct{ leapt time.Duration }

// Now returns the time, with all waits so far.
func (c *leapingClock) Now() time.Time { return time.Now().Add(c.leapt) }

// Sleep leaps.
func (c *leapingClock) Sleep(ctx context.Context, d time.Duration) error {
	c.leapt += d
	return context.Cause(ctx)
}

// want returns a small VM that is made from an image.
func want(edits ...func(map[string]cty.Value)) cty.Value {
	all := providertest.VM().AsValueMap()
	delete(all, "boot")
	all["accel"] = cty.StringVal("tcg") // KVM is watched for a moment, and there is none here
	all["image"] = cty.ObjectVal(map[string]cty.Value{"source": cty.StringVal("one.img"), "sha256": cty.NullVal(cty.String)})
	all["root_disk"] = cty.ObjectVal(map[string]cty.Value{"size": cty.NumberIntVal(2 << 20)})
	all["template"], all["params"], all["plain"] = cty.NullVal(cty.String), cty.NullVal(cty.Map(cty.String)), cty.NullVal(cty.Bool)
	all["mount"] = cty.ListValEmpty(cty.Object(map[string]cty.Type{"source": cty.String, "target": cty.String, "writable": cty.Bool}))
	for _, edit := range edits {
		edit(all)
	}
	return cty.ObjectVal(all)
}

func set(name string, value cty.Value) func(map[string]cty.Value) {
	return func(all map[string]cty.Value) { all[name] = value }
}

// processes returns the processes of the house.
func (h *house) processes(ctx context.Context) []process.Identity {
	h.t.Helper()
	found, err := process.Host{}.Find(ctx, func(argv []string) bool {
		return slices.ContainsFunc(argv, func(arg string) bool { return strings.HasPrefix(arg, h.home+"/") })
	})
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		h.t.Error(err)
	}
	return found
}

// end ends processes at once, and returns when they are gone.
func (h *house) end(ctx context.Context, all ...process.Identity) {
	h.t.Helper()
	for _, id := range all {
		var refused *process.RefusedError
		if _, err := (process.Host{}).Force(id); err != nil && !errors.As(err, &refused) {
			h.t.Error(err)
		}
	}
	if err := (process.Host{}).Wait(ctx, all...); err != nil {
		h.t.Error(err)
	}
}

// traces lists the files of the house and its processes.
func (h *house) traces() []string {
	h.t.Helper()
	all := []string{}
	err := filepath.WalkDir(h.data, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && (d.IsDir() || d.Name() == ".vmctl.lock" || strings.HasSuffix(path, ".log")) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		all = append(all, fmt.Sprintf("%s %d %s", path, info.Size(), info.ModTime()))
		return nil
	})
	if err != nil {
		h.t.Error(err)
	}
	for _, id := range h.processes(h.t.Context()) {
		all = append(all, fmt.Sprintf("process %d %d", id.PID, id.StartTime))
	}
	slices.Sort(all)
	return all
}

func (h *house) write(content string, parts ...string) {
	h.t.Helper()
	h.put(h.t, content, parts...)
}

func (h *house) put(tb testing.TB, content string, parts ...string) {
	tb.Helper()
	path := filepath.Join(append([]string{h.home}, parts...)...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}

func (h *house) read(parts ...string) string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{h.home}, parts...)...))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

const theirs = "images: [{location: /nowhere, arch: x86_64}]\ncpus: 1\nmemory: 64MiB\nmounts: []\n"

// world returns the house for the conformance suite.
func (h *house) world() *providertest.World {
	path := func(o providers.Object) string { return o.Attrs.GetAttr("path").AsString() }
	return &providertest.World{
		Type: h.limaType(), Settings: h.settings(), Want: want(), Policy: providertest.Waits(time.Minute), Traces: h.traces,
		Edits: []providertest.Edit{
			{Path: "memory", Value: cty.NumberIntVal(320 << 20)}, {Path: "cpus", Value: cty.NumberIntVal(2)}, providertest.Edits()[3],
		},
		Foreign: func(name string) func() string {
			h.write(theirs, name, "lima.yaml")
			h.write("", name, "disk")
			return func() string { return strings.Join(h.traces(), "\n") }
		},
		Copy: func(o providers.Object) string {
			name := o.Name + "-copy"
			for _, file := range []string{"lima.yaml", "vmctl.json", "disk"} {
				h.write(h.read(o.Name, file), name, file)
			}
			return name
		},
		Kill: func(o providers.Object) { h.end(h.t.Context(), h.processesOf(o.Name)...) },
		Deafen: func(w *providertest.World) {
			w.Want = want(set("params", cty.MapVal(map[string]cty.Value{"deaf": cty.StringVal("yes")})))
			w.Policy = providertest.Waits(time.Millisecond)
		},
		Blind: func(o providers.Object) { h.write("{", o.Name, "vmctl.json") },
		Cut:   func(*providertest.World) { h.blockHome() },
		Disks: providertest.Disks{
			Want: providertest.Disk(), Policy: providertest.Waits(time.Minute),
			Foreign: func(name string) (string, func() string) {
				h.write("", "_disks", name, "datadisk")
				h.qemuImg("create", "-q", "-f", "qcow2", filepath.Join(h.home, "_disks", name, "datadisk"), "8M")
				return name, func() string { return strings.Join(h.traces(), "\n") }
			},
			Attach: func(vm string, o providers.Object) {
				h.write(theirs+"additionalDisks: [{name: "+o.Name+"}]\n", vm, "lima.yaml")
				h.write("", vm, "disk")
			},
			AtStart: true,
			Fill:    func(o providers.Object) { h.qemuIO("write -P 0x76 512k 4k", path(o)) },
			Filled:  func(o providers.Object) bool { return h.qemuIO("read -P 0x76 512k 4k", path(o)) },
			Halve: func(o providers.Object) {
				if err := os.Remove(path(o)); err != nil {
					h.t.Fatal(err)
				}
			},
		},
		Effects: h.effects(),
	}
}

// blockHome puts a file into the place of the home.
func (h *house) blockHome() {
	h.t.Helper()
	if err := errors.Join(os.RemoveAll(h.home), os.WriteFile(h.home, nil, 0o600)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) processesOf(name string) []process.Identity {
	h.t.Helper()
	found, err := process.Host{}.Find(h.t.Context(), func(argv []string) bool {
		return slices.ContainsFunc(argv, func(arg string) bool { return strings.HasPrefix(arg, filepath.Join(h.home, name)+"/") })
	})
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		h.t.Error(err)
	}
	return found
}

func (h *house) qemuImg(args ...string) {
	h.t.Helper()
	if out, err := exec.Command("qemu-img", args...).CombinedOutput(); err != nil {
		h.t.Fatalf("qemu-img %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// qemuIO writes a pattern into a disk that may be in use, as its guest would, or reports whether it holds
// one.
func (h *house) qemuIO(command, path string) bool {
	h.t.Helper()
	args := []string{"-f", "qcow2", "-c", command, path}
	if strings.HasPrefix(command, "read") {
		args = append([]string{"-r", "-U"}, args...)
	}
	out, err := exec.Command("qemu-io", args...).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "Pattern verification failed") {
		h.t.Fatalf("qemu-io %s: %v: %s", path, err, out)
	}
	return err == nil && !strings.Contains(string(out), "Pattern verification failed")
}

func (h *house) effects() providertest.Effects {
	lacks := map[string]string{}
	for _, path := range []string{"boot.kernel", "boot.initrd", "boot.cmdline", "cloud_init.user_data", "cloud_init.network_config"} {
		lacks["vm."+path] = "Lima makes these itself"
	}
	return providertest.Effects{
		Images: [2]string{"one.img", "two.img"}, Lacks: providertest.WithoutNetworks(providertest.WithoutTerraform(lacks)),
		Reports: func(o providers.Object, _ cty.Value, path string) (string, bool) {
			switch path {
			case "ssh.identity", "ssh.authorized_keys":
				return h.read(o.Name, "lima.yaml"), true
			case "image.source":
				return h.read(o.Name, "image.sha256"), true
			}
			return "", false
		},
	}
}
