package spec_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// The provider types decide which blocks lead to one system.
func TestSystem(t *testing.T) {
	const source = `provider "sim" "a" {}
provider "sim" "b" {}
disk "d" {
  provider = provider.sim.a
  size     = "1GiB"
}
vm "v" {
  provider = provider.sim.a
  name     = "same"
}
vm "w" {
  provider = provider.sim.b
  name     = "same"
  additional_disk { disk = disk.d }
}
`
	dir := t.TempDir()
	write(t, dir+"/main.vmctl.hcl", []byte(source))
	for what, c := range map[string]struct {
		system func(spec.ProviderRef, cty.Value) string
		want   string
	}{
		"each its own": {
			system: func(ref spec.ProviderRef, _ cty.Value) string { return ref.Label() },
			want:   "Disk of another provider",
		},
		"all one": {
			system: func(spec.ProviderRef, cty.Value) string { return "" },
			want:   "Duplicate name",
		},
		"by attributes": {want: "Duplicate name"},
	} {
		_, diags := spec.Load(dir, spec.Inputs{System: c.system})
		if len(diags) != 1 || diags[0].Summary != c.want {
			t.Errorf("%s: %v, want %s", what, diags, c.want)
		}
	}
}

// Each engine has names of its own.
func TestNamesInEngines(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ in, want string }{{in: "engine.two"}, {in: "engine.one", want: "Duplicate name"}} {
		write(t, dir+"/main.vmctl.hcl", []byte(`engine "one" {}
engine "two" {
  host = "unix:///two"
}
volume "v" {
  engine = engine.one
  name   = "same"
}
volume "w" {
  engine = `+c.in+`
  name   = "same"
}
`))
		_, diags := spec.Load(dir, spec.Inputs{})
		if c.want == "" && len(diags) > 0 || c.want != "" && (len(diags) != 1 || diags[0].Summary != c.want) {
			t.Errorf("volumes in engine.one and %s: %v, want %q", c.in, diags, c.want)
		}
	}
}
