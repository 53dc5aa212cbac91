package spec_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"vmctl/spec"
)

// load loads one file from a new folder, in which there is also a `kernel`.
func load(t testing.TB, src string) (*spec.Config, hcl.Diagnostics) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir+"/main.vmctl.hcl", []byte(src))
	write(t, dir+"/kernel", []byte("a kernel"))
	return spec.Load(dir, spec.Inputs{})
}

// good loads one file that has no mistakes.
func good(t testing.TB, src string) *spec.Config {
	t.Helper()
	c, diags := load(t, src)
	if len(diags) > 0 {
		t.Fatalf("unexpected diagnostics:\n%s", render(t, c, diags))
	}
	return c
}

func TestLookup(t *testing.T) {
	c := good(t, `
vm "dev" {}
vm "web" {
  for_each = toset(["a", "b/c", "dev", "both"])
}
vm "db" {
  for_each = toset(["both", "only"])
}
`)
	for text, want := range map[string]string{
		"vm.dev":        `[vm.dev]`,
		"dev":           `[vm.dev]`,
		"vm.web":        `[vm.web["a"] vm.web["b/c"] vm.web["both"] vm.web["dev"]]`,
		"web":           `[vm.web["a"] vm.web["b/c"] vm.web["both"] vm.web["dev"]]`,
		`vm.web["a"]`:   `[vm.web["a"]]`,
		`web["b/c"]`:    `[vm.web["b/c"]]`,
		"b/c":           `[vm.web["b/c"]]`,
		"only":          `[vm.db["only"]]`,
		"both":          `[] "both" could be vm.db["both"] or vm.web["both"]: write the full address`,
		"wbe":           `[] "wbe" is not a resource of the spec. Did you mean "web"?`,
		"vm.dve":        `[] "vm.dve" is not a resource of the spec. Did you mean "vm.dev"?`,
		"vm.other":      `[] "vm.other" is not a resource of the spec.`,
		`vm.web["z"]`:   `[] "vm.web[\"z\"]" is not a resource of the spec. Did you mean "vm.web["a"]"?`,
		"somethingelse": `[] "somethingelse" is not a resource of the spec. It has vm.db["both"] and 6 more.`,
		"":              `[] "" is not a resource of the spec. It has vm.db["both"] and 6 more.`,
	} {
		found, err := c.Lookup(text)
		got := fmt.Sprint(found)
		if err != nil {
			got += " " + err.Error()
		}
		if got != want {
			t.Errorf("Lookup(%q)\n got %s\nwant %s", text, got, want)
		}
	}
	both := good(t, "vm \"dev\" {}\ndisk \"dev\" {\n  size = \"1GiB\"\n}\n")
	for _, kind := range []spec.Kind{spec.VM, spec.Disk} {
		if found, err := both.Lookup("dev", kind); err != nil || len(found) != 1 || found[0].Kind != kind {
			t.Errorf("the %s dev is %v, %v", kind, found, err)
		}
	}
	if _, err := both.Lookup("dev"); err == nil || err.Error() != `"dev" could be disk.dev or vm.dev: write the full address` {
		t.Errorf("of two kinds: %v", err)
	}
	if _, err := both.Lookup("disk.dev", spec.VM); err == nil || err.Error() != `"disk.dev" is not a resource of the spec.` {
		t.Errorf("of another kind: %v", err)
	}
	if _, err := good(t, "").Lookup("dev"); err == nil || err.Error() != `"dev" is not a resource of the spec. The spec has no resources.` {
		t.Errorf("in an empty spec: %v", err)
	}
	if _, err := good(t, "vm \"dev\" {}\n").Lookup("dev", spec.Container); err == nil || err.Error() != `"dev" is not a resource of the spec. The spec has no container.` {
		t.Errorf("where none is of its kind: %v", err)
	}
}

func TestResource(t *testing.T) {
	c := good(t, "vm \"b\" {}\nvm \"a\" {\n  for_each = { x = 1 }\n}\n")
	if r, ok := c.Resource(spec.Address{Kind: spec.VM, Name: "a", Key: "x"}); !ok || r.Address.String() != `vm.a["x"]` {
		t.Errorf("got %v, %t", r.Address, ok)
	}
	if r, ok := c.Resource(spec.Address{Kind: spec.VM, Name: "a"}); ok {
		t.Errorf("a block with for_each is no resource, but got %v", r.Address)
	}
}
