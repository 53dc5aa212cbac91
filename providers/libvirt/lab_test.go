package libvirt_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
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

// lab is one project on a libvirt in memory.
type lab struct {
	*libvirt.Fake
	t        testing.TB
	dir      string
	proc     string
	settings providers.Settings
	provider *libvirt.Provider
}

const (
	devID   = "11111111-2222-8333-8444-555555555555"
	otherID = "99999999-2222-8333-8444-555555555555"
	lineage = "k7m2qd9x4r"
)

var (
	dev  = spec.Address{Kind: spec.VM, Name: "dev"}
	null = cty.NullVal(cty.String)
)

func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{Fake: libvirt.NewFake(), t: t, dir: t.TempDir()}
	l.proc = filepath.Join(l.dir, "proc")
	l.file("proc/cpuinfo", "flags\t\t: fpu vmx sse\n")
	l.file("proc/sys/kernel/random/boot_id", "boot-1\n")
	l.file("files/vmlinuz", "kernel")
	l.file("files/initrd.gz", "ramdisk")
	l.settings = providers.Settings{
		Name:  "here",
		Attrs: cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu:///session"), "pool": null}),
		Dir:   filepath.Join(l.dir, "data", "libvirt"), Keys: filepath.Join(l.dir, "data", "keys"),
		Files: filepath.Join(l.dir, "files"), Project: providers.Project{Name: "lab", ID: lineage}, Now: time.Now,
	}
	l.open()
	return l
}

func (l *lab) open() {
	l.t.Helper()
	p, err := libvirt.OpenFake(libvirt.Host{UID: 1000, Proc: l.proc, Getenv: func(name string) string {
		return map[string]string{"HOME": "/home/me", "XDG_CACHE_HOME": filepath.Join(l.dir, "cache")}[name]
	}}, l.settings, l.Fake)
	if err != nil {
		l.t.Fatal(err)
	}
	l.provider = p
}

func (l *lab) file(name, content string) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func digestOf(content string) cty.Value {
	sum := sha256.Sum256([]byte(content))
	return cty.StringVal(hex.EncodeToString(sum[:]))
}

// vm returns the attributes of a vm in a spec, with some changes.
func vm(changes map[string]cty.Value) cty.Value {
	m := map[string]cty.Value{
		"name": null, "running": cty.True, "cpus": cty.NumberIntVal(1), "memory": cty.NumberIntVal(256 << 20),
		"accel": cty.StringVal("tcg"),
		"boot": cty.ObjectVal(map[string]cty.Value{
			"kernel": cty.StringVal("vmlinuz"), "kernel_sha256": digestOf("kernel"),
			"initrd": cty.StringVal("initrd.gz"), "initrd_sha256": digestOf("ramdisk"),
			"cmdline": cty.StringVal("console=ttyS0 quiet"),
		}),
		"port_forward": forwards("auto"), "additional_disk": additional(),
		"ssh": cty.ObjectVal(map[string]cty.Value{"user": cty.StringVal("root"), "identity": null, "host_key": cty.StringVal("pin")}),
	}
	maps.Copy(m, changes)
	return cty.ObjectVal(m)
}

func forwards(hosts ...string) cty.Value {
	var all []cty.Value
	for i, host := range hosts {
		all = append(all, cty.ObjectVal(map[string]cty.Value{
			"guest": cty.NumberIntVal(int64(8080 + i)), "host": cty.StringVal(host),
			"host_ip": cty.StringVal("127.0.0.1"), "protocol": cty.StringVal("tcp"),
		}))
	}
	return cty.ListVal(all)
}

// additional returns the additional disks of a vm.
func additional(names ...string) cty.Value {
	shape := cty.Object(map[string]cty.Type{"disk": cty.String, "mount_point": cty.String})
	var all []cty.Value
	for _, name := range names {
		all = append(all, cty.ObjectVal(map[string]cty.Value{"disk": cty.StringVal("disk." + name), "mount_point": null}))
	}
	if len(all) == 0 {
		return cty.ListValEmpty(shape)
	}
	return cty.ListVal(all)
}

// policy returns a policy with short waits, and none for SSH.
func policy(changes map[string]cty.Value) cty.Value {
	m := map[string]cty.Value{
		"start":     cty.ObjectVal(map[string]cty.Value{"timeout": cty.NumberIntVal(600)}),
		"stop":      cty.ObjectVal(map[string]cty.Value{"grace": cty.NumberIntVal(30), "force": cty.True, "force_wait": cty.NumberIntVal(10)}),
		"ssh":       cty.ObjectVal(map[string]cty.Value{"wait": cty.False, "wait_timeout": cty.NumberIntVal(300)}),
		"lifecycle": cty.ObjectVal(map[string]cty.Value{"prevent_destroy": cty.False, "on_change": cty.MapValEmpty(cty.String)}),
	}
	maps.Copy(m, changes)
	return cty.ObjectVal(m)
}

// create returns the change that makes vm.dev.
func create(want cty.Value) providers.Change {
	return providers.Change{
		Address: dev, Kind: spec.VM, Action: providers.Create, Name: "lab.dev", ID: devID,
		Want: want, Policy: policy(nil), Generation: 1,
	}
}

// change returns a change of vm.dev as it is now.
func (l *lab) change(action providers.Action, want cty.Value, paths ...string) providers.Change {
	l.t.Helper()
	c := providers.Change{
		Address: dev, Kind: spec.VM, Action: action, Name: "lab.dev", ID: devID,
		Want: want, Policy: policy(nil), Generation: 2, Object: l.object(want),
	}
	for _, path := range paths {
		c.Edits = append(c.Edits, providers.Edit{Path: path})
	}
	return c
}

// rekeyed returns c with other keys for its guest.
func rekeyed(c providers.Change) providers.Change {
	c.Rekey = &providers.Verdict{Applies: providers.Restart}
	return c
}

// object returns vm.dev as Observe shows it.
func (l *lab) object(want cty.Value) *providers.Object {
	l.t.Helper()
	for _, o := range l.observe(want).Objects {
		if o.ID == devID {
			return &o
		}
	}
	l.t.Fatal("vm.dev does not exist")
	return nil
}

func (l *lab) observe(want cty.Value) providers.Inventory {
	l.t.Helper()
	inv, err := l.provider.Observe(l.t.Context(), providers.Query{Known: []providers.Known{
		{Address: dev, Kind: spec.VM, ID: devID, Name: "lab.dev", Want: want},
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	return inv
}

// apply carries out a change as an executor does, and returns the steps that were done, with
// their outcomes.
func (l *lab) apply(c providers.Change) string {
	l.t.Helper()
	return l.applyIn(l.t.Context(), c)
}

func (l *lab) applyIn(ctx context.Context, c providers.Change) string {
	l.t.Helper()
	steps, err := l.provider.Steps(c)
	if err != nil {
		return "steps: " + err.Error() + "\n"
	}
	expect := map[providers.ID]string{}
	if c.Object != nil {
		expect[c.Object.ID] = c.Object.Fingerprint
	}
	var b strings.Builder
	prior := c.Prior
	for _, s := range steps {
		r, err := l.provider.Do(ctx, providers.Work{
			Step: s, Expect: expect[s.Object], Prior: prior, Want: c.Want, Uses: c.Uses, Policy: c.Policy, Generation: c.Generation,
		}, func(p providers.Progress) { fmt.Fprintf(&b, "  . %s\n", p.Text) })
		if err != nil {
			b.WriteString(l.failure(s.Op, err))
			break
		}
		fmt.Fprintf(&b, "%s: %s%s\n", s.Op, r.How, runState(r))
		for _, e := range r.Evidence {
			fmt.Fprintf(&b, "  = %s\n", e)
		}
		expect[s.Object] = r.Fingerprint
		if c.Prior == cty.NilVal { // there was no record before
			prior = r.Values
		}
	}
	return l.plain(b.String())
}

func runState(r providers.Result) string {
	switch {
	case r.Gone:
		return ", gone"
	case r.Running == nil:
		return ""
	case *r.Running:
		return ", running"
	default:
		return ", off"
	}
}

func (l *lab) failure(op string, err error) string {
	var f *providers.Problem
	if !errors.As(err, &f) {
		return fmt.Sprintf("%s: not a failure: %v\n", op, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %s: %v\n", op, f.Outcome, f.Code, f)
	for _, s := range f.Seen {
		fmt.Fprintf(&b, "  seen: %s\n", s)
	}
	for _, s := range providertest.Lines(f.Next) {
		fmt.Fprintf(&b, "  next: %s\n", s)
	}
	return b.String()
}

// plain replaces the parts of a text that differ from run to run.
func (l *lab) plain(s string) string {
	return strings.NewReplacer(filepath.Join(l.dir, "data/keys", devID), "KEYS", l.dir, "DIR").Replace(s)
}

// made returns a lab with vm.dev in it, off or running as wanted.
func made(t testing.TB, want cty.Value) *lab {
	t.Helper()
	l := newLab(t)
	if got := l.apply(create(want)); strings.Contains(got, "failed") || strings.Contains(got, "next:") {
		t.Fatalf("make vm.dev:\n%s", got)
	}
	l.Calls = nil
	return l
}

func wantText(t *testing.T, what, want, got string) {
	t.Helper()
	want = strings.TrimPrefix(want, "\n")
	if diff := cmp.Diff(named(want), named(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// named replaces the IDs in the names of two vms' volumes by names that people can tell
// apart.
func named(text string) string {
	return strings.NewReplacer(devID+".", "DEV.", otherID+".", "OPS.").Replace(text)
}

// wantGolden compares with a file under testdata, or writes it with UPDATE=1.
func wantGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(named(got)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), named(got)); diff != "" {
		t.Errorf("%s (-want +got), UPDATE=1 writes it:\n%s", name, diff)
	}
}

func (l *lab) calls() string { return strings.Join(l.Calls, "\n") + "\n" }
