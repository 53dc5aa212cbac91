package spec_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// thousand is a spec of two thousand machines, half of which need one of the others.
const thousand = `
locals {
  keys = toset([for p in setproduct(range(10), range(100)) : "k${p[0]}-${p[1]}"])
}
vm "a" {
  for_each = local.keys
}
vm "b" {
  for_each = local.keys
  boot {
    kernel  = "kernel"
    cmdline = vm.a[each.key].address
  }
}
`

func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	write(b, dir+"/main.vmctl.hcl", []byte(thousand))
	write(b, dir+"/kernel", []byte("a kernel"))
	for b.Loop() {
		if c, diags := spec.Load(dir, spec.Inputs{}); diags.HasErrors() || len(c.Resources) != 2000 {
			b.Fatal(diags)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	c := good(b, thousand)
	values := map[spec.Address]cty.Value{}
	for _, r := range c.Resources {
		values[r.Address] = record("10.0.0.1")
	}
	last := c.Resources[len(c.Resources)-1].Address
	for b.Loop() {
		if r, diags := c.Resolve(last, values); diags.HasErrors() || !r.Want.IsWhollyKnown() {
			b.Fatal(diags)
		}
	}
}
