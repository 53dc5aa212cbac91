package spec_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"pgregory.net/rapid"

	"vmctl/spec"
)

func debian() cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"name":     cty.StringVal("debian-old"),
		"running":  cty.False,
		"cpus":     cty.NumberIntVal(2), // the default
		"memory":   cty.NumberIntVal(3 << 29),
		"accel":    cty.StringVal("auto"),
		"id":       cty.StringVal("6c1e0000-0000-4000-8000-000000000000"),
		"address":  cty.StringVal("127.0.0.1"),
		"ssh_port": cty.NullVal(cty.Number),
		"boot":     cty.NullVal(cty.EmptyObject),
		"additional_disk": cty.TupleVal([]cty.Value{
			cty.ObjectVal(map[string]cty.Value{"disk": cty.StringVal("disk.data")}),
			cty.ObjectVal(map[string]cty.Value{"disk": cty.StringVal(`disk.each["a \"b\""]`), "mount_point": cty.NullVal(cty.String)}),
		}),
		"ssh":              cty.ObjectVal(map[string]cty.Value{"user": cty.StringVal("root"), "host_key": cty.StringVal("pin")}),
		"cloud_init":       cty.ObjectVal(map[string]cty.Value{"user_data": cty.StringVal("secret").Mark("sensitive")}),
		"restart_triggers": cty.MapVal(map[string]cty.Value{"a": cty.UnknownVal(cty.String)}),
		"lifecycle": cty.ObjectVal(map[string]cty.Value{
			"ignore_changes": cty.ListVal([]cty.Value{cty.StringVal("boot.kernel"), cty.StringVal("boot.kernel_sha256"), cty.StringVal("memory")}),
		}),
	})
}

func TestGenerate(t *testing.T) {
	for name, c := range map[string]struct {
		found spec.Existing
		want  string
	}{
		"a machine": {
			found: spec.Existing{
				To: spec.Address{Kind: spec.VM, Name: "scratch"}, ID: "debian-old",
				Provider: spec.ProviderRef{Type: "libvirt", Name: "host", Key: "a"}, Attrs: debian(),
			},
			want: `import {
  to = vm.scratch
  id = "debian-old"
}

vm "scratch" {
  provider = provider.libvirt.host["a"]
  name     = "debian-old"
  running  = false
  memory   = "1536MiB"

  additional_disk {
    disk = disk.data
  }

  additional_disk {
    disk = disk.each["a \"b\""]
  }

  cloud_init {
  }

  lifecycle {
    ignore_changes = [boot.kernel, memory]
  }
}
`,
		},
		"a machine of an image": {
			found: spec.Existing{
				To: spec.Address{Kind: spec.VM, Name: "a"}, ID: "a", Provider: spec.ProviderRef{Type: "libvirt", Name: "default"},
				Attrs: cty.ObjectVal(map[string]cty.Value{
					"image":     cty.ObjectVal(map[string]cty.Value{"source": cty.StringVal("a ${b}\".qcow2"), "sha256": cty.NullVal(cty.String)}),
					"root_disk": cty.ObjectVal(map[string]cty.Value{"size": cty.NumberIntVal(20 << 30)}),
				}),
			},
			want: `import {
  to = vm.a
  id = "a"
}

vm "a" {
  image = "a $${b}\".qcow2"
}
`,
		},
		"a disk": {
			found: spec.Existing{
				To: spec.Address{Kind: spec.Disk, Name: "data"}, ID: "/var/lib/data.raw",
				Provider: spec.ProviderRef{Type: "libvirt", Name: "here"},
				Attrs: cty.ObjectVal(map[string]cty.Value{
					"name": cty.StringVal("data"), "size": cty.NumberIntVal(1000), "format": cty.StringVal("raw"),
					"path": cty.StringVal("/var/lib/data.raw"),
				}),
			},
			want: "`size` is \"1000B\"; the minimum is \"1MiB\"",
		},
		"a disk that grew": {
			found: spec.Existing{
				To: spec.Address{Kind: spec.Disk, Name: "data"}, ID: "/var/lib/data.raw",
				Provider: spec.ProviderRef{Type: "libvirt", Name: "here"},
				Attrs: cty.ObjectVal(map[string]cty.Value{
					"name": cty.StringVal("data"), "size": cty.NumberIntVal(3<<20 + 512), "format": cty.StringVal("raw"),
				}),
			},
			want: `import {
  to = disk.data
  id = "/var/lib/data.raw"
}

disk "data" {
  provider = provider.libvirt.here
  name     = "data"
  size     = "3146240B"
  format   = "raw"
}
`,
		},
		"nothing": {
			found: spec.Existing{To: spec.Address{Kind: spec.VM, Name: "a"}, ID: "a", Attrs: cty.EmptyObjectVal},
			want: `import {
  to = vm.a
  id = "a"
}

vm "a" {
}
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := spec.Generate(c.found)
			if err != nil {
				got = []byte(err.Error())
				c.want = "write a block for " + c.found.To.String() + ": " + c.want
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("generated (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGenerateRefuses(t *testing.T) {
	vm := spec.Address{Kind: spec.VM, Name: "a"}
	attrs := func(pairs map[string]cty.Value) spec.Existing {
		return spec.Existing{To: vm, ID: "a", Attrs: cty.ObjectVal(pairs)}
	}
	for want, f := range map[string]spec.Existing{
		`write a block for task.a: there is no kind of resource "task"`:                                                                        {To: spec.Address{Kind: "task", Name: "a"}, ID: "a"},
		`write a block for vm.a["k"]: it is an instance of a for_each: write its block yourself`:                                               {To: spec.Address{Kind: spec.VM, Name: "a", Key: "k"}, ID: "a"},
		`write a block for vm.a: the object to import has no id`:                                                                               {To: vm, ID: " "},
		"write a block for disk.a: `size` is unknown, and a block requires it":                                                                 {To: spec.Address{Kind: spec.Disk, Name: "a"}, ID: "a"},
		"write a block for vm.a: `name` is \"my vm\". A name has 1 to 63 letters, digits, `.`, `_` and `-`, and begins with a letter or digit": attrs(map[string]cty.Value{"name": cty.StringVal("my vm")}),
		"write a block for vm.a: `memory` is \"1MiB\"; the minimum is \"16MiB\"":                                                               attrs(map[string]cty.Value{"memory": cty.NumberIntVal(1 << 20)}),
		"write a block for vm.a: `cpus` is a string, not a number":                                                                             attrs(map[string]cty.Value{"cpus": cty.StringVal("many")}),
		"write a block for vm.a: `port_forward` is a bool, not a list":                                                                         attrs(map[string]cty.Value{"port_forward": cty.True}),
		"write a block for vm.a: `additional_disk[0].disk` is \"vm.b\", which is not the address of a disk": attrs(map[string]cty.Value{"additional_disk": cty.TupleVal([]cty.Value{
			cty.ObjectVal(map[string]cty.Value{"disk": cty.StringVal("vm.b")}),
		})}),
		"write a block for vm.a: `port_forward[0].host_ip` is ::01, which a block cannot express": attrs(map[string]cty.Value{"port_forward": cty.TupleVal([]cty.Value{
			cty.ObjectVal(map[string]cty.Value{"guest": cty.NumberIntVal(1), "host_ip": cty.StringVal("::01")}),
		})}),
		"write a block for vm.a: `cpus` is 0; it must be from 1 to 4096\n`boot.kernel` is unknown, and a block requires it": attrs(map[string]cty.Value{
			"cpus": cty.Zero, "boot": cty.ObjectVal(map[string]cty.Value{"cmdline": cty.StringVal("quiet")}),
		}),
	} {
		out, err := spec.Generate(f)
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s\n%s", err, want, out)
		}
	}
}

// The block that is written for an object wants the attributes that the object shows, whatever
// they are.
func TestGeneratedBlocksWantWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kernel"), []byte("k"))
	write(t, filepath.Join(dir, "app", "Dockerfile"), []byte("FROM scratch"))
	rest := "provider \"libvirt\" \"here\" {\n  for_each = toset([\"a\"])\n}\n" +
		"disk \"d\" {\n  for_each = toset([\"x\", \"y\", \"z\"])\n  provider = provider.libvirt.here[\"a\"]\n  size = \"1GiB\"\n}\n" +
		"network \"n\" {\n  for_each = toset([\"x\", \"y\", \"z\"])\n  provider = provider.libvirt.here[\"a\"]\n  cidr = \"10.0.0.0/24\"\n}\n"
	write(t, filepath.Join(dir, "rest.vmctl.hcl"), []byte(rest))
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]spec.Kind{spec.VM, spec.Disk}).Draw(t, "kind")
		shape, ok := spec.Shape(kind)
		if !ok {
			t.Fatal("no shape")
		}
		f := spec.Existing{
			To: spec.Address{Kind: kind, Name: "found"}, ID: rapid.StringMatching(`[ -~]{0,10}[!-~]`).Draw(t, "id"),
			Provider: spec.ProviderRef{Type: "libvirt", Name: "here", Key: "a"},
			Attrs:    drawBlock(t, shape, ""),
		}
		src, err := spec.Generate(f)
		if err != nil {
			t.Fatalf("of %#v: %v", f.Attrs, err)
		}
		if again, diags := spec.Format(src, "main.vmctl.hcl"); diags.HasErrors() || string(again) != string(src) {
			t.Fatalf("not formatted, or no HCL: %v\n%s", diags, src)
		}
		if err := os.WriteFile(filepath.Join(dir, "main.vmctl.hcl"), src, 0o600); err != nil {
			t.Fatal(err)
		}
		c, diags := spec.Load(dir, spec.Inputs{})
		if diags.HasErrors() {
			t.Fatalf("%v of\n%s", errorsOf(diags), src)
		}
		if len(c.Imports) != 1 || c.Imports[0].To != f.To || c.Imports[0].ID != f.ID {
			t.Fatalf("imports %+v of\n%s", c.Imports, src)
		}
		r, _ := c.Resource(f.To)
		if r.Provider != f.Provider {
			t.Fatalf("provider %s of\n%s", r.Provider, src)
		}
		if path, ok := within(shape, f.Attrs, r.Want, r.Policy, ""); !ok {
			t.Fatalf("%s is not as it was shown in\n%s\nof %#v", path, src, f.Attrs)
		}
	})
}

func errorsOf(diags hcl.Diagnostics) []string {
	var all []string
	for _, d := range diags {
		all = append(all, d.Summary+": "+d.Detail)
	}
	return all
}

// drawBlock draws the attributes that an object may show of a block.
func drawBlock(t *rapid.T, b spec.Block, path string) cty.Value {
	values := map[string]cty.Value{}
	for _, a := range b.Attrs {
		if a.Meta || !a.Required && rapid.IntRange(0, 2).Draw(t, path+a.Name+" left out") == 0 {
			continue
		}
		values[a.Name] = drawAttr(t, a, path+a.Name)
	}
	booted := false
	for _, nested := range b.Blocks {
		if !slices.ContainsFunc(nested.Attrs, func(a spec.Attr) bool { return !a.Meta }) { // no object shows it
			continue
		}
		at := path + nested.Name
		booting := nested.Name == "boot" || nested.Name == "image"
		if booting && booted || rapid.Bool().Draw(t, at+" left out") {
			continue
		}
		booted = booted || booting
		if !nested.Repeated {
			values[nested.Name] = drawBlock(t, nested, at+".")
			continue
		}
		if nested.Labelled {
			items := map[string]cty.Value{}
			for _, label := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b-c", "script"}), 1, 3, rapid.ID).Draw(t, at+" labels") {
				items[label] = drawBlock(t, nested, at+".")
			}
			values[nested.Name] = cty.ObjectVal(items)
			continue
		}
		var items []cty.Value
		for i := range rapid.IntRange(0, 3).Draw(t, at+" number") {
			item := drawBlock(t, nested, at+".").AsValueMap()
			if _, ok := item["disk"]; ok { // no disk twice
				item["disk"] = cty.StringVal([]string{`disk.d["x"]`, `disk.d["y"]`, `disk.d["z"]`}[i])
			}
			if _, ok := item["network"]; ok { // no network twice
				item["network"] = cty.StringVal([]string{`network.n["x"]`, `network.n["y"]`, `network.n["z"]`}[i])
			}
			items = append(items, cty.ObjectVal(item))
		}
		values[nested.Name] = cty.TupleVal(items)
	}
	return cty.ObjectVal(values)
}

func drawAttr(t *rapid.T, a spec.Attr, at string) cty.Value {
	text := rapid.OneOf(rapid.StringMatching(`[ -~\n\t]{0,12}`), rapid.String())
	switch {
	case a.Form == spec.Ceilings:
		return cty.MapVal(map[string]cty.Value{"name": cty.StringVal("replace")})
	case a.Form == spec.Paths:
		return cty.ListVal([]cty.Value{cty.StringVal(rapid.SampledFrom([]string{"name", "all"}).Draw(t, at))})
	case a.OneOf != nil:
		return cty.StringVal(rapid.SampledFrom(a.OneOf).Draw(t, at))
	case a.File:
		return cty.StringVal("kernel")
	case a.Type == cty.Bool:
		return cty.BoolVal(rapid.Bool().Draw(t, at))
	case a.Type == cty.Number:
		most := a.Max
		if most == 0 {
			most = math.MaxInt64
		}
		if a.Unit == spec.Duration {
			most = math.MaxInt32
		}
		return cty.NumberIntVal(rapid.Int64Range(a.Min, most).Draw(t, at))
	case a.Form == spec.MountOptions:
		return cty.ListVal([]cty.Value{cty.StringVal("reconnect"), cty.StringVal("x=${y}")})
	case a.Form == spec.VariableNames:
		return cty.ListVal([]cty.Value{cty.StringVal("NAME"), cty.StringVal("PREFIX_*")})
	case a.Type.IsListType():
		var values []cty.Value
		for _, line := range rapid.SliceOfN(text, 1, 3).Draw(t, at) {
			values = append(values, cty.StringVal(strings.ToValidUTF8(line, "")))
		}
		return cty.ListVal(values)
	case a.Form == spec.Variables:
		return cty.MapVal(map[string]cty.Value{"NAME": cty.StringVal("${value}\n")})
	case a.Type.IsMapType():
		values := map[string]cty.Value{}
		for k, v := range rapid.MapOfN(rapid.StringMatching(`[a-z"$ {]{1,5}`), text, 1, 3).Draw(t, at) {
			values[k] = cty.StringVal(strings.ToValidUTF8(v, ""))
		}
		return cty.MapVal(values)
	}
	drawn := map[spec.Form]*rapid.Generator[string]{
		spec.ObjectName:   rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,10}`),
		spec.UserName:     rapid.StringMatching(`[a-z_][a-z0-9_-]{0,10}`),
		spec.IPAddress:    rapid.SampledFrom([]string{"127.0.0.1", "::1", "10.0.0.1"}),
		spec.AutoAddress:  rapid.SampledFrom([]string{"auto", "10.0.0.10"}),
		spec.HostPort:     rapid.SampledFrom([]string{"auto", "1", "65535"}),
		spec.WhenBusy:     rapid.SampledFrom([]string{"block", "wait 1m30s"}),
		spec.SHA256:       rapid.StringMatching(`[0-9a-f]{64}`),
		spec.FileOrURL:    rapid.SampledFrom([]string{"kernel", "not there.qcow2", "https://example.org/${x}?a=b"}),
		spec.GuestPath:    rapid.StringMatching(`/[ -~]{0,10}`),
		spec.HostFolder:   rapid.SampledFrom([]string{".", "src", "/", "/srv/${x}", "~", "~/src", "./~src", "../up"}),
		spec.BuildContext: rapid.SampledFrom([]string{"app", "../app/../spec/app"}),
		spec.InnerPath:    rapid.SampledFrom([]string{"Dockerfile"}),
		spec.YAML:         rapid.SampledFrom([]string{"{}\n", "cpus: 4\n", "a: |\n  ${x}\n   %{y}\nb: \"\\0\"\n"}),
		spec.JSONObject:   rapid.SampledFrom([]string{`{}`, `{"a":["${x}",1.5],"b":{"c":null}}`}),
		spec.OneLine:      rapid.StringMatching(`[ -~]{0,10}`),
		spec.AnyText:      text,
	}[a.Form].Draw(t, at)
	if a.Refers != nil {
		return cty.StringVal("disk.d[\"x\"]")
	}
	return cty.StringVal(strings.ToValidUTF8(drawn, ""))
}

// within reports whether every attribute that is shown of a block is wanted, or is policy; else
// it names one that is not.
func within(b spec.Block, shown, want, policy cty.Value, path string) (string, bool) {
	part := func(v cty.Value, name string) cty.Value {
		if v == cty.NilVal || v.IsNull() || !v.Type().HasAttribute(name) {
			return cty.NilVal
		}
		return v.GetAttr(name)
	}
	for _, a := range b.Attrs {
		v := part(shown, a.Name)
		if a.Computed || a.Derived || a.Own || v == cty.NilVal {
			continue
		}
		got := part(want, a.Name)
		if got == cty.NilVal {
			got = part(policy, a.Name)
		}
		if same, err := convert.Convert(v, a.Type); got == cty.NilVal || err != nil || !same.RawEquals(got) {
			return path + a.Name, false
		}
	}
	for _, nested := range b.Blocks {
		v, w, p := part(shown, nested.Name), part(want, nested.Name), part(policy, nested.Name)
		if v == cty.NilVal {
			continue
		}
		at := path + nested.Name + "."
		if !nested.Repeated {
			if found, ok := within(nested, v, w, p, at); !ok {
				return found, false
			}
			continue
		}
		if w.LengthInt() != v.LengthInt() {
			return path + nested.Name, false
		}
		if nested.Labelled {
			for label, item := range v.AsValueMap() {
				if found, ok := within(nested, item, part(w, label), cty.NilVal, at); !ok {
					return found, false
				}
			}
			continue
		}
		for i, item := range v.AsValueSlice() {
			if found, ok := within(nested, item, w.AsValueSlice()[i], cty.NilVal, at); !ok {
				return found, false
			}
		}
	}
	return "", true
}
