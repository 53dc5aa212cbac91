package spec_test

import (
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

func TestAttrAt(t *testing.T) {
	for path, want := range map[string]string{
		"memory":                "memory",
		"boot.kernel":           "kernel",
		"port_forward[0].guest": "guest",
		"port_forward.guest":    "guest",
		"stop.grace":            "grace",
		"ssh.wait":              "wait",
		`ports["80"]`:           "ports",
		`ports["a.b"]`:          "ports",
		"lifecycle.on_change":   "on_change",
		"":                      "",
		"boot":                  "",
		"boot.":                 "",
		"memory.x":              "",
		"stop.grase":            "",
		"stop.grace.x":          "",
		"port_forward[0]":       "",
		"[":                     "",
	} {
		got, ok := spec.AttrAt(spec.VM, path)
		if ok != (want != "") || ok && got.Name != want {
			t.Errorf("AttrAt(%q) = %q, %t", path, got.Name, ok)
		}
	}
	if a, ok := spec.AttrAt(spec.Disk, "size"); !ok || a.Unit != spec.Bytes {
		t.Errorf("the size of a disk is %+v, %t", a, ok)
	}
	if _, ok := spec.AttrAt("cloud", "size"); ok {
		t.Error("a cloud has attributes")
	}
}

// Every shape is complete and keeps its own rules.
func TestShapes(t *testing.T) {
	for _, kind := range []spec.Kind{spec.VM, spec.Disk, spec.Engine, spec.Image, spec.Volume, spec.Network, spec.Container, box.Kind} {
		shape, ok := spec.Shape(kind)
		if !ok {
			t.Fatalf("a %s has no shape", kind)
		}
		checkShape(t, string(kind), shape)
	}
	for _, typ := range []string{"libvirt", "lima", "sim", "terraform"} {
		shape, ok := spec.ProviderShape(typ)
		if !ok {
			t.Fatalf("%s has no shape", typ)
		}
		checkShape(t, typ, shape)
	}
	if _, ok := spec.Shape("task"); ok {
		t.Error("a task has a shape")
	}
	if _, ok := spec.ProviderShape("vagrant"); ok {
		t.Error("vagrant has a shape")
	}
}

func checkShape(t *testing.T, path string, b spec.Block) {
	if b.Doc == "" {
		t.Errorf("%s has no Doc", path)
	}
	seen := map[string]bool{}
	name := func(n string) {
		if seen[n] {
			t.Errorf("%s has %s twice", path, n)
		}
		seen[n] = true
	}
	for _, a := range b.Attrs {
		name(a.Name)
		if a.Doc == "" || a.Type == cty.NilType {
			t.Errorf("%s.%s is not complete: %+v", path, a.Name, a)
		}
		if text := a.Type == cty.String || a.Type.IsCollectionType() && a.Type.ElementType() == cty.String; a.Sensitive &&
			(!text || b.Repeated && !b.Labelled || a.File || a.Policy || b.Policy || a.Meta || a.Computed || a.Refers != nil || a.Public != "") {
			t.Errorf("%s.%s cannot be sensitive: only wanted texts outside of lists can", path, a.Name)
		}
		if a.Default == cty.NilVal {
			continue
		}
		if !a.Default.Type().Equals(a.Type) || a.Required {
			t.Errorf("%s.%s has the default %#v", path, a.Name, a.Default)
		}
		if a.OneOf != nil && a.Type == cty.String && !slices.Contains(a.OneOf, a.Default.AsString()) {
			t.Errorf("%s.%s has the default %#v, which is none of %v", path, a.Name, a.Default, a.OneOf)
		}
		if n := cty.NumberIntVal(a.Min); a.Type == cty.Number && a.Default.LessThan(n).True() {
			t.Errorf("%s.%s has the default %#v, which is too small", path, a.Name, a.Default)
		}
	}
	for _, nested := range b.Blocks {
		name(nested.Name)
		filled := !nested.Repeated && (!nested.Optional || nested.DefaultedWith != "")
		if i := slices.IndexFunc(nested.Attrs, func(a spec.Attr) bool { return a.Required }); filled && i >= 0 {
			t.Errorf("%s.%s gets its defaults when it is left out, and %s is required", path, nested.Name, nested.Attrs[i].Name)
		}
		checkShape(t, path+"."+nested.Name, nested)
	}
	for _, later := range b.Later {
		name(later)
	}
}

// The types that states and plans are written with.
func TestTypes(t *testing.T) {
	c := good(t, "vm \"a\" {}\nvm \"b\" {\n  boot {\n    kernel = \"kernel\"\n  }\n  port_forward {\n    guest = 1\n  }\n}\n")
	for _, r := range c.Resources {
		if want := spec.WantType(spec.VM); !r.Want.Type().Equals(want) {
			t.Errorf("%s has the type %#v, want %#v", r.Address, r.Want.Type(), want)
		}
		if want := spec.PolicyType(spec.VM); !r.Policy.Type().Equals(want) {
			t.Errorf("%s has the policy type %#v, want %#v", r.Address, r.Policy.Type(), want)
		}
	}
}
