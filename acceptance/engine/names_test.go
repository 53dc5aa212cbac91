//go:build linux

package engine_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// A name that an engine takes, and most other systems would not, is the name in the engine, in every listing and in the record:
// the record is found by an address, whatever the name is.
//
// row E32
func TestNamesOfTheEngine(t *testing.T) {
	d := sharedDaemon(t)
	const others = `
volume "cache" {
  engine   = engine.here
  for_each = toset(["My_Cache", "a.b-C_2"])
  name     = each.key
}
`
	p := projectOf(t, d, main+others)
	p.edit("container \"web\" {\n", "container \"web\" {\n  name = \"My_Web.1\"\n")
	p.applies()
	d.must("POST", "/volumes/create", `{"Name":"Their_Volume.X"}`)
	for _, name := range []string{"My_Cache", "a.b-C_2"} {
		if now := read[struct{ Name string }](d, "/volumes/"+name).Name; now != name {
			t.Errorf("the engine has the volume %q, want %q", now, name)
		}
	}
	if got := strings.Join(p.names(), " "); got != "/My_Web.1" {
		t.Errorf("the containers are %s", got)
	}

	var doc struct {
		Resources []struct {
			Address, Object string
			Facts           struct{ Names []string }
		}
		Undeclared []struct{ Kind, Name string }
	}
	if err := json.Unmarshal([]byte(p.run(0, "status", "--json")), &doc); err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, r := range doc.Resources {
		if len(r.Facts.Names) > 0 {
			shown = append(shown, r.Address+" is "+r.Object+" alias "+strings.Join(r.Facts.Names, " "))
		}
	}
	for _, o := range doc.Undeclared {
		if o.Kind == "volume" {
			shown = append(shown, "undeclared "+o.Name)
		}
	}
	want := `container.web is My_Web.1 alias My_Web.1
image.box is demo.box alias demo/box:1
volume.cache["My_Cache"] is My_Cache alias My_Cache
volume.cache["a.b-C_2"] is a.b-C_2 alias a.b-C_2
volume.data is demo.data alias demo.data
undeclared Their_Volume.X`
	if got := strings.Join(shown, "\n"); got != want {
		t.Errorf("status shows\n%s\nwant\n%s", got, want)
	}
	says(t, p.run(0, "show", `volume.cache["My_Cache"]`), "My_Cache")

	// A record's key is an address, which leads back to it.
	keys := strings.Fields(p.run(0, "state", "list"))
	if want := []string{"container.web", "engine.here", "image.box", `volume.cache["My_Cache"]`, `volume.cache["a.b-C_2"]`, "volume.data"}; !slices.Equal(keys, want) {
		t.Errorf("the records are %q, want %q", keys, want)
	}
	for _, key := range keys {
		p.run(0, "state", "show", key)
	}
	says(t, p.run(0, "state", "show", `volume.cache["a.b-C_2"]`), "a.b-C_2")
	p.run(0, "plan", "--detailed-exitcode")
	p.run(0, "destroy", "--auto-approve")
	if left := d.must("GET", "/volumes", ""); strings.Contains(left, "My_Cache") || !strings.Contains(left, "Their_Volume.X") {
		t.Errorf("the volumes are %s", left)
	}
}
