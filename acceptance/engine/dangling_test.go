//go:build linux

package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ids lists the images of the engine, also those without a name.
func (d *daemon) ids() []string {
	d.t.Helper()
	var all []string
	for _, i := range listed[struct{ ID string }](d, "/images/json") {
		all = append(all, i.ID)
	}
	return all
}

// idOf returns the ID of the image that has a name.
func (d *daemon) idOf(name string) string {
	d.t.Helper()
	return read[struct{ ID string }](d, "/images/"+name+"/json").ID
}

// loadByHand loads the archive of the project, past vmctl.
func (p *project) loadByHand() {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "box.tar"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.d.must("POST", "/images/load", string(text))
}

// nameless makes an image without a name, and returns its ID.
func (p *project) nameless() string {
	p.t.Helper()
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(p.d.must("POST", "/commit?container=demo.web&pause=0", "{}")), &made); err != nil {
		p.t.Fatal(err)
	}
	return made.ID
}

// An image that vmctl made, and that loses its name to its successor, does not stay behind. One of others that has no name stays,
// and is listed.
func TestDanglingImages(t *testing.T) {
	d := sharedDaemon(t)
	p := newProject(t, d)
	p.archive("one", "demo/box:1", "demo/also:1")
	p.applies()
	first := d.idOf("demo/box:1")

	p.archive("two", "demo/box:1", "demo/also:1") // the load takes the second name from the first image
	p.applies()
	second := d.idOf("demo/box:1")
	if got := d.ids(); second == first || !slices.Equal(got, []string{second}) {
		t.Errorf("with a new archive there are %v, want its image %s alone, and not %s", got, second, first)
	}

	p.archive("three", "demo/box:1", "demo/also:1") // built anew by hand: both names move
	p.loadByHand()
	third := d.idOf("demo/box:1")
	p.archive("two", "demo/box:1", "demo/also:1")
	p.applies()
	if got := d.ids(); third == second || !slices.Equal(got, []string{third}) || p.container().Image != third {
		t.Errorf("with a name that was moved by hand there are %v, want %s alone, and not %s; the container is of %s", got, third, second, p.container().Image)
	}

	theirs := p.nameless()
	p.edit("host = \"unix", "unmanaged {\n    images = \"report\"\n  }\n  host = \"unix")
	if out := p.run(2, "plan", "--detailed-exitcode"); !strings.Contains(out, theirs) {
		t.Errorf("the plan does not list the image %s without a name:\n%s", theirs, out)
	}
	p.run(0, "apply", "--auto-approve")
	p.edit(`"one"`, `"two"`) // the container is replaced
	p.run(0, "apply", "--auto-approve")
	if got := d.ids(); !slices.Contains(got, theirs) {
		t.Errorf("there are %v, and the image of others was %s", got, theirs)
	}
	p.run(0, "cleanup", "engine.here/image/"+theirs, "--auto-approve")
	if got := d.ids(); slices.Contains(got, theirs) {
		t.Errorf("after its cleanup there are %v", got)
	}
	p.run(0, "destroy", "--auto-approve")
}

// Two blocks have an image each of one archive, in whichever order they are loaded. A name of the archive that an image of others
// has stays with that one.
func TestOneArchiveOfTwoImages(t *testing.T) {
	d := sharedDaemon(t)
	const other = `
image "other" {
  engine  = engine.here
  ref     = "demo/other:2"
  archive = "box.tar"
}
`
	p := projectOf(t, d, main+other)
	p.archive("one", "demo/box:1", "demo/other:2")
	p.run(0, "apply", "--auto-approve", "--parallelism=1")
	p.run(0, "plan", "--detailed-exitcode")
	p.archive("two", "demo/box:1", "demo/other:2")
	p.run(0, "apply", "--auto-approve", "--parallelism=1")
	p.run(0, "plan", "--detailed-exitcode")
	if got := d.ids(); len(got) != 1 {
		t.Errorf("with a new archive there are %v, want one image", got)
	}
	p.run(0, "destroy", "--auto-approve")
	if got := d.ids(); len(got) > 0 {
		t.Errorf("destroy left %v", got)
	}

	p.archive("theirs", "demo/other:2")
	p.loadByHand()
	theirs := d.idOf("demo/other:2")
	p.main = main
	p.edit()
	p.archive("three", "demo/box:1", "demo/other:2")
	out := p.run(6, "apply", "--auto-approve", "--target=image.box")
	if !strings.Contains(out, "demo/other:2, too, a name of another image") || d.idOf("demo/other:2") != theirs {
		t.Errorf("demo/other:2 is %s now, and was %s; apply says\n%s", d.idOf("demo/other:2"), theirs, out)
	}
	p.archive("three")
	p.applies()
	p.run(0, "destroy", "--auto-approve")
}
