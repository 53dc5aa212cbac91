//go:build cgo && libvirt_dlopen && linux

package provider_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/providers/providertest"
	"vmctl/spec"
)

// house is one project on the test user's own libvirt.
type house struct {
	t        *testing.T
	dir      string
	provider providers.Provider
	settings providers.Settings
}

// projectID is the ID of the projects of all houses. Searches beside them have another one.
const projectID = "h5v8n3c2wz"

func newHouse(t *testing.T, project string) *house {
	t.Helper()
	h := &house{t: t, dir: filepath.Join(os.Getenv(homeVar), project)}
	typ := libvirt.Type(libvirt.Host{UID: os.Getuid(), Getenv: os.Getenv})
	h.settings = providers.Settings{
		Name: "default",
		Attrs: typ.Resolve(cty.ObjectVal(map[string]cty.Value{
			"uri": cty.NullVal(cty.String), "pool": cty.NullVal(cty.String),
		})),
		Dir: filepath.Join(h.dir, "libvirt"), Keys: filepath.Join(h.dir, "keys"), Files: os.Getenv(homeVar),
		Project: providers.Project{Name: project, ID: projectID}, Now: time.Now,
	}
	p, err := typ.Open(t.Context(), h.settings)
	if err != nil {
		t.Fatal(err)
	}
	h.provider = p
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// vm is one address of a house.
type vm struct {
	*house
	address spec.Address
	id      providers.ID
	name    string
	want    map[string]cty.Value
	policy  map[string]cty.Value
	values  cty.Value // as a record would have them
}

// vm returns a tiny guest that is wanted running and reachable.
func (h *house) vm(name string) *vm {
	boot := map[string]cty.Value{
		"kernel": cty.StringVal("guest/vmlinuz"), "kernel_sha256": h.sha256("guest/vmlinuz"),
		"initrd": cty.StringVal("guest/initrd.gz"), "initrd_sha256": h.sha256("guest/initrd.gz"),
		"cmdline": cty.StringVal("console=ttyS0 quiet no_timer_check"),
	}
	sum := sha256.Sum256([]byte(h.settings.Project.Name + name))
	id := hex.EncodeToString(sum[:16])
	return &vm{
		house: h, address: spec.Address{Kind: spec.VM, Name: name}, name: h.settings.Project.Name + "." + name,
		id: providers.ID(id[:8] + "-" + id[8:12] + "-8" + id[13:16] + "-8" + id[17:20] + "-" + id[20:]),
		want: map[string]cty.Value{
			"name": cty.NullVal(cty.String), "running": cty.True, "cpus": cty.NumberIntVal(1),
			"memory": cty.NumberIntVal(256 << 20), "accel": cty.StringVal("auto"), "boot": cty.ObjectVal(boot),
			"port_forward": forwards("auto"), "additional_disk": noDisks,
			"ssh": cty.ObjectVal(map[string]cty.Value{
				"user": cty.StringVal("root"), "identity": cty.NullVal(cty.String), "host_key": cty.StringVal("pin"),
			}),
		},
		policy: map[string]cty.Value{
			"stop": cty.ObjectVal(map[string]cty.Value{"grace": cty.NumberIntVal(60), "force": cty.True, "force_wait": cty.NumberIntVal(20)}),
			"ssh":  cty.ObjectVal(map[string]cty.Value{"wait": cty.True, "wait_timeout": cty.NumberIntVal(240)}),
		},
		values: cty.NilVal,
	}
}

var noDisks = cty.ListValEmpty(cty.Object(map[string]cty.Type{"disk": cty.String, "mount_point": cty.String}))

func forwards(host string) cty.Value {
	return cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
		"guest": cty.NumberIntVal(8080), "host": cty.StringVal(host), "host_ip": cty.StringVal("127.0.0.1"), "protocol": cty.StringVal("tcp"),
	})})
}

// cmdline adds to the kernel's command line.
func (v *vm) cmdline(words string) {
	boot := v.want["boot"].AsValueMap()
	boot["cmdline"] = cty.StringVal(boot["cmdline"].AsString() + " " + words)
	v.want["boot"] = cty.ObjectVal(boot)
}

func (h *house) sha256(name string) cty.Value {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(os.Getenv(homeVar), name))
	if err != nil {
		h.t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return cty.StringVal(hex.EncodeToString(sum[:]))
}

// object returns the vm as Observe shows it, or nil if the vm does not exist.
func (v *vm) object() *providers.Object {
	v.t.Helper()
	inv, err := v.provider.Observe(v.t.Context(), providers.Query{Known: []providers.Known{
		{Address: v.address, Kind: spec.VM, ID: v.id, Name: v.name, Prior: v.values, Want: cty.ObjectVal(v.want)},
	}})
	if err != nil || len(inv.Partial) > 0 || len(inv.Unknown) > 0 {
		v.t.Fatalf("observe: %v, partial %v, unknown %v", err, inv.Partial, inv.Unknown)
	}
	for _, o := range inv.Objects {
		if o.ID == v.id {
			return &o
		}
	}
	return nil
}

// apply carries out an action as an executor does, each step with the
// fingerprint that the one before it left, and returns the steps and their ends.
func (v *vm) apply(action providers.Action, edits ...string) string {
	v.t.Helper()
	return v.carryOut(v.change(action, edits...))
}

func (v *vm) change(action providers.Action, edits ...string) providers.Change {
	v.t.Helper()
	c := providers.Change{
		Address: v.address, Kind: spec.VM, Action: action, Name: v.name, ID: v.id, Object: v.object(),
		Want: cty.ObjectVal(v.want), Policy: cty.ObjectVal(v.policy), Generation: 1,
	}
	for _, path := range edits {
		c.Edits = append(c.Edits, providers.Edit{Path: path})
	}
	return c
}

func (v *vm) carryOut(c providers.Change) string {
	v.t.Helper()
	steps, err := v.provider.Steps(c)
	if err != nil {
		v.t.Fatal(err)
	}
	expect := ""
	if c.Object != nil {
		expect = c.Object.Fingerprint
	}
	var done []string
	for _, s := range steps {
		ctx, cancel := context.WithTimeout(v.t.Context(), s.Timeout)
		r, err := v.provider.Do(ctx, providers.Work{
			Step: s, Expect: expect, Prior: v.values, Want: c.Want, Policy: c.Policy, Generation: c.Generation,
		}, func(p providers.Progress) { v.t.Logf("%s %s: %s", s.Op, s.Name, p.Text) })
		cancel()
		var f *providers.Problem
		if errors.As(err, &f) {
			v.t.Logf("%s %s: %s %s: %v\n  %s\n  %s", s.Op, s.Name, f.Outcome, f.Code, err, strings.Join(f.Seen, "\n  "), strings.Join(providertest.Lines(f.Next), "\n  "))
			return strings.Join(append(done, fmt.Sprintf("%s %s %s", s.Op, f.Outcome, f.Code)), ", ")
		}
		if err != nil {
			v.t.Fatalf("%s: not a failure: %v", s.Op, err)
		}
		v.t.Logf("%s %s: %s %v", s.Op, s.Name, r.How, r.Evidence)
		done = append(done, fmt.Sprintf("%s %s", s.Op, r.How))
		expect = r.Fingerprint
		if r.Values != cty.NilVal {
			v.values = r.Values
		}
	}
	return strings.Join(done, ", ")
}

// must applies an action and demands the result want of apply.
func (v *vm) must(want string, action providers.Action, edits ...string) {
	v.t.Helper()
	if diff := cmp.Diff(want, v.apply(action, edits...)); diff != "" {
		v.t.Fatalf("%s (-want +got):\n%s", action, diff)
	}
}

// enter returns the inside of a VM that runs.
func (h *house) enter(o providers.Object, want cty.Value) providers.Guest {
	h.t.Helper()
	g, err := h.provider.(providers.Host).Enter(h.t.Context(), o, want)
	if err != nil {
		h.t.Fatal(err)
	}
	return g
}

// inside runs a command in a VM, and returns its output.
func (h *house) inside(o providers.Object, want cty.Value, args ...string) string {
	h.t.Helper()
	g := h.enter(o, want)
	var out bytes.Buffer
	result, err := g.Run(h.t.Context(), providers.Command{Args: args, Stdout: &out})
	if err := errors.Join(err, g.Close()); err != nil || result.Status != 0 {
		h.t.Fatalf("%q in the guest: status %d, %v\n%s%s", args, result.Status, err, &out, result.Stderr)
	}
	return strings.TrimSpace(out.String())
}

// run runs a command in the guest.
func (v *vm) run(args ...string) string {
	v.t.Helper()
	return v.inside(*v.object(), cty.ObjectVal(v.want), args...)
}

func (v *vm) sshPort() int {
	v.t.Helper()
	n, _ := v.object().Attrs.GetAttr("ssh_port").AsBigFloat().Int64()
	return int(n)
}

// differences lists the wanted attributes to which the system shows another value.
func (v *vm) differences() string {
	v.t.Helper()
	shown := v.object().Attrs.AsValueMap()
	var all []string
	for name, want := range v.want {
		got, ok := shown[name]
		if !ok {
			continue
		}
		if want.Type().IsObjectType() { // what the system does not show counts as equal
			m := want.AsValueMap()
			maps.Copy(m, got.AsValueMap())
			got = cty.ObjectVal(m)
		}
		if !got.RawEquals(want) {
			all = append(all, fmt.Sprintf("%s: %#v instead of %#v", name, got, want))
		}
	}
	return strings.Join(all, "\n")
}

// await returns once something is true, which has ten minutes for it.
func (h *house) await(what string, isTrue func() bool) {
	h.t.Helper()
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if isTrue() {
			return
		}
	}
	h.t.Fatalf("waited in vain until %s", what)
}

// virsh runs virsh, as somebody may do behind vmctl's back.
func (h *house) virsh(args ...string) string {
	h.t.Helper()
	out, err := exec.Command("virsh", append([]string{"-q", "-c", "qemu:///session"}, args...)...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("virsh %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// processes lists the QEMUs of a house by its folder, which each carries in its
// arguments.
func (h *house) processes() []int {
	h.t.Helper()
	var all []int
	for _, pid := range livingIn(os.Getenv(homeVar)) {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(args), "\x00"+h.settings.Dir+"\x00") {
			all = append(all, pid)
		}
	}
	return all
}

// nothing fails the test unless nothing of the house is left.
func (h *house) nothing() {
	h.t.Helper()
	if pids := h.processes(); len(pids) > 0 {
		h.t.Errorf("processes are left: %v", pids)
	}
	if domains := h.domains(); len(domains) > 0 {
		h.t.Errorf("domains are left: %s", domains)
	}
	if pools := h.pools(); len(pools) > 0 {
		h.t.Errorf("pools are left: %s", pools)
	}
	err := filepath.WalkDir(h.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "keys.lock" { // which stays for good
			h.t.Errorf("a file is left: %s", path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Error(err)
	}
}
