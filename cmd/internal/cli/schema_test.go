package cli_test

import (
	"encoding/json"
	"testing"

	"vmctl/cmd/internal/view"
	"vmctl/spec"
)

// Each attribute of each block is in the schema, and can be explained by its path.
func TestSchemaHasEveryAttribute(t *testing.T) {
	h := newHouse(t, withID)
	var doc view.SchemaDocument
	if err := json.Unmarshal([]byte(h.run("schema", "--json").exits(0).stdout), &doc); err != nil {
		t.Fatal(err)
	}
	n := 0
	var walk func(b spec.Block, in view.SchemaBlock, path string)
	walk = func(b spec.Block, in view.SchemaBlock, path string) {
		if in.Doc == "" || in.Doc != b.Doc {
			t.Errorf("%s: the schema says %q, the shape %q", path, in.Doc, b.Doc)
		}
		for _, a := range b.Attrs {
			got, is := in.Attributes[a.Name]
			switch {
			case a.Derived:
				continue
			case !is || got.Doc != a.Doc || got.Type == "" || got.Required != a.Required:
				t.Errorf("%s.%s: the schema has %+v", path, a.Name, got)
			}
			n++
			if n%20 == 1 {
				h.run("explain", path+"."+a.Name).exits(0).says(path+"."+a.Name, got.Type)
			}
		}
		for _, nested := range b.Blocks {
			walk(nested, in.Blocks[nested.Name], path+"."+nested.Name)
		}
	}
	for _, b := range spec.Shapes() {
		walk(b, doc.Blocks[b.Name], b.Name)
	}
	for _, b := range spec.ProviderShapes() {
		walk(b, doc.Providers[b.Name], "provider."+b.Name)
	}
	if n < 150 {
		t.Errorf("the shapes have %d attributes: they were not read", n)
	}
}

func TestExplain(t *testing.T) {
	h := newHouse(t, withID)
	if got, want := h.run("explain", "vm.stop.grace").exits(0).stdout, `vm.stop.grace duration, default "30s"
  How long it may take to shut down after the request.
  at least  1s
`; got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	h.run("explain", "vm.stop").exits(0).says("Settings of stopping it", "force_wait", "policy")
	h.run("explain", "vm.stop.grase").exits(3).warns(`the language has no "vm.stop.grase". Did you mean "grace"?`)
	h.run("explain", "vn").exits(3).warns(`Did you mean "vm"?`)
	h.run("explain", "vm.memory").exits(0).says("size")
	h.run("explain", "container.image").exits(0).says("reference", "refers to  image")
	h.run("explain", "network.cidr").exits(0).says("string, required, only with provider")
	h.run("explain", "network.allocation").exits(0).says("only with provider")
}

func TestVersionFlag(t *testing.T) {
	h := newHouse(t, withID)
	want := h.run("version").exits(0).stdout
	if got := h.run("--version").exits(0).stdout; got != want || got == "" {
		t.Errorf("--version says %q, version %q", got, want)
	}
	h.run("--version", "--json").exits(0).says(`"version": "0.1.0"`)
}
