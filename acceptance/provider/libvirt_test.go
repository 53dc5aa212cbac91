//go:build cgo && libvirt_dlopen && linux

package provider_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/spec"
)

// house is one project on the test user's own libvirt.
type house struct {
	t        *testing.T
	dir      string
	provider providers.Provider
	settings providers.Settings
}

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
		Project: providers.Project{Name: project, ID: "k7m2qd9x4r"}, Now: time.Now,
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

func (h *house) observe(known ...providers.Known) providers.Inventory {
	h.t.Helper()
	inv, err := h.provider.Observe(h.t.Context(), providers.Query{Known: known})
	if err != nil {
		h.t.Fatal(err)
	}
	return inv
}

// do carries out the steps of a change as an executor does, each with the
// fingerprint that the one before it left.
func (h *house) do(c providers.Change) (string, *providers.Failure, cty.Value) {
	h.t.Helper()
	steps, err := h.provider.Steps(c)
	if err != nil {
		h.t.Fatal(err)
	}
	expect := map[providers.ID]string{}
	if c.Object != nil {
		expect[c.Object.ID] = c.Object.Fingerprint
	}
	var done []string
	values := c.Prior
	for _, s := range steps {
		ctx, cancel := context.WithTimeout(h.t.Context(), s.Timeout)
		start := time.Now()
		r, err := h.provider.Do(ctx, providers.Work{
			Step: s, Expect: expect[s.Object], Prior: values, Want: c.Want, Policy: c.Policy, Generation: c.Generation,
		}, func(p providers.Progress) { h.t.Logf("  %s: %s", s.Op, p.Text) })
		cancel()
		h.t.Logf("%s %s: %s %v after %s %v", s.Op, s.Name, r.How, err, time.Since(start).Round(time.Millisecond), r.Evidence)
		if err != nil {
			var f *providers.Failure
			if !errors.As(err, &f) {
				h.t.Fatalf("%s: not a failure: %v", s.Op, err)
			}
			h.t.Logf("seen %q next %q", f.Seen, f.Next)
			return strings.Join(done, ", "), f, values
		}
		done = append(done, fmt.Sprintf("%s %s", s.Op, r.How))
		expect[s.Object] = r.Fingerprint
		if r.Values != cty.NilVal {
			values = r.Values
		}
	}
	return strings.Join(done, ", "), nil, values
}

func (h *house) want(edit func(map[string]cty.Value)) cty.Value {
	initrd, kernel := h.sha256("guest/initrd.gz"), h.sha256("guest/vmlinuz")
	m := map[string]cty.Value{
		"name": cty.NullVal(cty.String), "running": cty.True, "cpus": cty.NumberIntVal(1),
		"memory": cty.NumberIntVal(256 << 20), "accel": cty.StringVal("tcg"),
		"boot": cty.ObjectVal(map[string]cty.Value{
			"kernel": cty.StringVal("guest/vmlinuz"), "kernel_sha256": cty.StringVal(kernel),
			"initrd": cty.StringVal("guest/initrd.gz"), "initrd_sha256": cty.StringVal(initrd),
			"cmdline": cty.StringVal("console=ttyS0 quiet"),
		}),
		"port_forward": cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
			"guest": cty.NumberIntVal(8080), "host": cty.StringVal("auto"), "host_ip": cty.StringVal("127.0.0.1"), "protocol": cty.StringVal("tcp"),
		})}),
		"ssh": cty.ObjectVal(map[string]cty.Value{
			"user": cty.StringVal("root"), "identity": cty.NullVal(cty.String), "host_key": cty.StringVal("pin"),
		}),
	}
	if edit != nil {
		edit(m)
	}
	return cty.ObjectVal(m)
}

var dev = spec.Address{Kind: spec.VM, Name: "dev"}

func TestLine(t *testing.T) {
	h := newHouse(t, "line")
	want := h.want(nil)
	known := providers.Known{Address: dev, Kind: spec.VM, Name: "line.dev", Want: want}
	id := providers.ID("11111111-2222-8333-8444-555555555555")
	inv := h.observe(known)
	t.Logf("%+v", inv)
	got, f, values := h.do(providers.Change{Address: dev, Kind: spec.VM, Action: providers.Create, Name: "line.dev", ID: id, Want: want, Generation: 1})
	if f != nil {
		t.Fatal(f)
	}
	t.Log(got, values.GoString())
	known.ID, known.Prior = id, values
	inv = h.observe(known)
	t.Logf("%+v", inv.Objects)
	got, f, values = h.do(providers.Change{Address: dev, Kind: spec.VM, Action: providers.Destroy, Name: "line.dev", ID: id, Object: &inv.Objects[0], Prior: values})
	t.Log(got, f, values)
	inv = h.observe(known)
	t.Logf("%+v", inv.Objects)
}
