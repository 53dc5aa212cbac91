package sim_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/providertest"
	"vmctl/providers/providertest/box"
	"vmctl/providers/sim"
	"vmctl/spec"
)

// house is a folder with one simulated host.
type house struct {
	t    *testing.T
	data string
	dir  string // of the host

	hostAgent bool // of new VMs
}

// newHouse makes a house. At the end of the test it ends all processes in it.
func newHouse(t *testing.T) *house {
	t.Helper()
	data, err := os.MkdirTemp("", "s") //nolint:usetesting // the path of t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, data: data, dir: filepath.Join(data, "sim-here")}
	t.Cleanup(func() {
		for _, id := range h.processes(context.Background()) {
			h.end(context.Background(), id)
		}
		if err := os.RemoveAll(data); err != nil {
			t.Error(err)
		}
	})
	return h
}

func simType(t testing.TB) providers.Type { return simAs(t, isVM+"=1") }

// simAs returns the type whose VMs run this test binary with an environment variable.
func simAs(t testing.TB, env string) providers.Type {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return sim.Type(sim.Host{Program: self, Env: []string{env}, Path: os.Getenv("PATH")})
}

// insideTypes returns the types of what is inside of the VMs of simType.
func insideTypes() map[spec.Kind]providers.Type {
	return map[spec.Kind]providers.Type{box.Kind: box.Type(nil)}
}

// settings returns the settings of the host, with faults.
func (h *house) settings(weightless bool, faults ...cty.Value) providers.Settings {
	list := cty.ListValEmpty(faultType())
	if len(faults) > 0 {
		list = cty.ListVal(faults)
	}
	return providers.Settings{
		Name: "here", Dir: h.dir, Files: h.data, Keys: filepath.Join(h.data, "keys"), Now: time.Now,
		Project: providers.Project{Name: "lab", ID: "k7m2qd9x4r"},
		Attrs:   cty.ObjectVal(map[string]cty.Value{"weightless": cty.BoolVal(weightless), "host_agent": cty.BoolVal(h.hostAgent), "fault": list}),
	}
}

func faultType() cty.Type {
	return cty.Object(map[string]cty.Type{
		"op": cty.String, "address": cty.String, "kind": cty.String, "times": cty.Number, "delay": cty.Number,
	})
}

// fault returns the block of a fault that strikes any address, always.
func fault(op, kind string, edits ...func(map[string]cty.Value)) cty.Value {
	m := map[string]cty.Value{
		"op": cty.StringVal(op), "kind": cty.StringVal(kind), "address": cty.NullVal(cty.String),
		"times": cty.NullVal(cty.Number), "delay": cty.NumberFloatVal(0.05),
	}
	for _, edit := range edits {
		edit(m)
	}
	return cty.ObjectVal(m)
}

func times(n int64) func(map[string]cty.Value) {
	return func(m map[string]cty.Value) { m["times"] = cty.NumberIntVal(n) }
}

func want() cty.Value { return providertest.VM() }

func forwards(host string) cty.Value {
	return cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
		"guest": cty.NumberIntVal(80), "host": cty.StringVal(host), "host_ip": cty.StringVal("127.0.0.1"), "protocol": cty.StringVal("tcp"),
	})})
}

// policy returns a policy whose waits are long enough for a busy machine, but for the grace.
func policy(grace float64) cty.Value { return waiting(grace, 60) }

// short returns a policy with short waits, for VMs that do not end in any way.
func short(wait float64) cty.Value { return waiting(wait, wait) }

func waiting(grace, forceWait float64) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"start": cty.ObjectVal(map[string]cty.Value{"timeout": cty.NumberIntVal(60)}),
		"stop": cty.ObjectVal(map[string]cty.Value{
			"grace": cty.NumberFloatVal(grace), "force": cty.True, "force_wait": cty.NumberFloatVal(forceWait),
		}),
		"ssh": cty.ObjectVal(map[string]cty.Value{"wait": cty.True, "wait_timeout": cty.NumberIntVal(60)}),
		"lifecycle": cty.ObjectVal(map[string]cty.Value{
			"prevent_destroy": cty.False, "on_change": cty.MapValEmpty(cty.String),
		}),
	})
}

// processes returns the processes that run VMs of the house.
func (h *house) processes(ctx context.Context) []process.Identity {
	h.t.Helper()
	found, err := process.Host{}.Find(ctx, func(argv []string) bool {
		return slices.ContainsFunc(argv, func(arg string) bool { return strings.HasPrefix(arg, h.dir+"/") })
	})
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		h.t.Error(err)
	}
	return found
}

// end ends a process at once, and returns when it is gone.
func (h *house) end(ctx context.Context, id process.Identity) {
	h.t.Helper()
	var refused *process.RefusedError
	if _, err := (process.Host{}).Force(id); err != nil && !errors.As(err, &refused) {
		h.t.Error(err)
	}
	if err := (process.Host{}).Wait(ctx, id); err != nil {
		h.t.Error(err)
	}
}

// traces lists the files of the house and the processes that run its VMs.
func (h *house) traces() []string {
	h.t.Helper()
	all := []string{}
	err := filepath.WalkDir(h.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".log") { // a VM writes to it at its own time
			all = append(all, path)
			return nil
		}
		digest := "no file"
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			digest = fmt.Sprintf("%x", sha256.Sum256(content))
		}
		all = append(all, fmt.Sprintf("%s %s %s", path, info.ModTime(), digest))
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

// pidFiles lists the host's pid files.
func (h *house) pidFiles() []string {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(h.dir, "run", "*.pid"))
	if err != nil {
		h.t.Fatal(err)
	}
	return files
}

func (h *house) vmPath(name string) string { return filepath.Join(h.dir, "vms", name+".json") }

func (h *house) write(path, content string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) read(path string) string {
	h.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(content)
}

// edit changes a JSON file.
func (h *house) edit(path string, change func(map[string]any)) {
	h.t.Helper()
	var m map[string]any
	decoder := json.NewDecoder(strings.NewReader(h.read(path)))
	decoder.UseNumber()
	if err := decoder.Decode(&m); err != nil {
		h.t.Fatal(err)
	}
	change(m)
	content, err := json.Marshal(m)
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(path, string(content))
}

// processOf returns the process that runs the VM dev.
func (h *house) processOf() process.Identity {
	h.t.Helper()
	all := h.processesOf(devID)
	if len(all) == 0 {
		h.t.Fatalf("no process runs %s", devID)
	}
	return all[0]
}

// processesOf returns the processes of a VM, its host agent among them.
func (h *house) processesOf(id providers.ID) []process.Identity {
	h.t.Helper()
	found, err := process.Host{}.Find(h.t.Context(), process.HasArgument(string(id)))
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		h.t.Error(err)
	}
	return slices.DeleteFunc(h.processes(h.t.Context()), func(p process.Identity) bool { return !slices.Contains(found, p) })
}

// world returns the house as a world for the conformance suite.
func (h *house) world(weightless bool) *providertest.World {
	w := &providertest.World{
		Type: simType(h.t), Inside: insideTypes(), Settings: h.settings(weightless), Want: want(), Policy: policy(60), Traces: h.traces,
		Edits: providertest.Edits(),
		Foreign: func(name string) func() string {
			h.write(h.vmPath(name), `{"format":1,"id":"other","name":"`+name+`","config":{"cpus":1,"memory":1,"accel":"tcg"}}`)
			return func() string { return h.read(h.vmPath(name)) }
		},
		Deafen: func(w *providertest.World) {
			w.Settings, w.Policy = h.settings(weightless, fault("stop", "ignore_request")), policy(0.05)
		},
		Stick: func(w *providertest.World) {
			w.Settings = h.settings(weightless, fault("stop", "unkillable"))
		},
		Blind: func(o providers.Object) { h.write(h.vmPath(o.Name), "{") },
		Copy: func(o providers.Object) string {
			name := o.Name + "-copy"
			h.write(h.vmPath(name), h.read(h.vmPath(o.Name)))
			h.edit(h.vmPath(name), func(m map[string]any) { m["id"], m["name"] = "copy", name })
			return name
		},
		Cut: func(w *providertest.World) {
			w.Settings.Dir = filepath.Join(h.data, "no-folder")
			h.write(w.Settings.Dir, "")
		},
		Kill: func(o providers.Object) {
			if weightless {
				h.edit(h.vmPath(o.Name), func(m map[string]any) { m["run"].(map[string]any)["ended"] = true })
				return
			}
			for _, id := range h.processesOf(o.ID) {
				h.end(h.t.Context(), id)
			}
		},
		Disks: h.disks(), Effects: h.effects(weightless),
	}
	return w
}

// disks returns the disks of the host, for the conformance suite.
func (h *house) disks() providertest.Disks {
	const work = "work of the guest"
	return providertest.Disks{
		Want: diskWant(8 << 20), Policy: diskPolicy("unlock"),
		Foreign: func(name string) (string, func() string) {
			h.write(h.diskPath(name), strings.Repeat("theirs\n", 1<<17))
			return name, func() string { return h.read(h.diskPath(name)) }
		},
		Attach: func(vm string, o providers.Object) {
			h.write(h.vmPath(vm), `{"format":1,"id":"other","name":"`+vm+`","config":{"cpus":1,"memory":1,"accel":"tcg","disks":[{"name":"`+o.Name+`"}]}}`)
		},
		Fill: func(o providers.Object) {
			f, err := os.OpenFile(h.diskPath(o.Name), os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt([]byte(work), 4096)
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				h.t.Fatal(err)
			}
		},
		Filled: func(o providers.Object) bool { return strings.Contains(h.read(h.diskPath(o.Name)), work) },
		Halve: func(o providers.Object) {
			if err := os.Remove(h.diskPath(o.Name)); err != nil {
				h.t.Fatal(err)
			}
		},
	}
}

func (h *house) diskPath(name string) string { return filepath.Join(h.dir, "disks", name+".disk") }

func diskWant(size int64) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"name": cty.NullVal(cty.String), "size": cty.NumberIntVal(size), "format": cty.StringVal("qcow2"), "fs_type": cty.NullVal(cty.String),
	})
}

func diskPolicy(onStaleLock string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"on_stale_lock": cty.StringVal(onStaleLock),
		"lifecycle":     cty.ObjectVal(map[string]cty.Value{"prevent_destroy": cty.False, "on_change": cty.MapValEmpty(cty.String)}),
		"timeouts":      cty.ObjectVal(map[string]cty.Value{"create": cty.NumberIntVal(60), "delete": cty.NumberIntVal(60)}),
	})
}

var dev = spec.Address{Kind: spec.VM, Name: "dev"}

const devID = providers.ID("11111111-2222-8333-8444-555555555555")
