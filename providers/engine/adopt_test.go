package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/engine"
	"vmctl/spec"
)

// openEngines opens the provider of engines.
func (f *fake) openEngines() providers.Provider {
	f.t.Helper()
	p, err := engine.Types(engine.Host{Docker: f.docker})[0].Open(f.t.Context(), providers.Settings{
		Project: providers.Project{Name: "demo", ID: "lineage"},
		Via:     &providers.Via{Address: spec.ThisHost, Enter: func(context.Context) (providers.Guest, error) { return f, nil }},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

// An engine that answers at the socket of a block without a record is there, with the same ID each time. One that gives
// no answer is not there yet.
//
// row E36, of an engine without a record
func TestUnrecordedEngine(t *testing.T) {
	f := newFake(t)
	p := f.openEngines()
	q := providers.Query{Known: []providers.Known{{
		Address: here, Kind: spec.Engine, Name: "demo.here", Want: cty.ObjectVal(map[string]cty.Value{"host": cty.StringVal("unix:///s")}),
	}}}
	seen := map[providers.ID]bool{}
	for range 2 {
		inv, err := p.Observe(t.Context(), q)
		if err != nil || len(inv.Objects) != 1 || len(inv.Unknown) > 0 {
			t.Fatalf("observed %v, unknown %v, %v", inv.Objects, inv.Unknown, err)
		}
		o := inv.Objects[0]
		if o.Owner == nil || o.Owner.Address != here || o.Owner.Of != o.ID || o.Owner.ID != "lineage" {
			t.Errorf("its mark is %+v", o.Owner)
		}
		seen[o.ID] = true
	}
	if len(seen) != 1 {
		t.Errorf("it had the IDs %v", seen)
	}
	f.set("GET /info", answer{body: `{"ID":"another","DockerRootDir":"/d"}`})
	if inv, err := p.Observe(t.Context(), q); err != nil || len(inv.Objects) != 1 || seen[inv.Objects[0].ID] {
		t.Errorf("another engine at the socket was observed as %v, %v", inv.Objects, err)
	}
	f.set("GET /info", answer{status: 500})
	if inv, err := p.Observe(t.Context(), q); err != nil || len(inv.Objects) > 0 {
		t.Errorf("without an answer it observed %v, %v", inv.Objects, err)
	}
}

// A container that bears our mark proves that the image of its block is ours, if it is made of the image that has the name
// now.
//
// row E36, of images without a record
func TestUnrecordedImage(t *testing.T) {
	box := spec.Address{Kind: spec.Image, Name: "box"}
	text := func(name, value string) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{name: cty.StringVal(value)})
	}
	theirs, copied := labels("demo.web"), labels("another")
	theirs["vmctl.id"] = "theirs"
	const ours, none = "demo.box docker.i of image.box\n", "docker.io/library/box:1 docker.i\n"
	for _, test := range []struct {
		name          string
		labels        map[string]string
		image, wanted string // what has the name, and the image in the block of the container
		want          string
	}{
		{"ours uses it", labels("demo.web"), "sha256:one", "image.box", ours},
		{"ours uses what had the name before", labels("demo.web"), "sha256:two", "image.box", none},
		{"the block of ours names another", labels("demo.web"), "sha256:one", "image.other", none},
		{"one of others uses it", theirs, "sha256:one", "image.box", none},
		{"a copy of ours uses it", copied, "sha256:one", "image.box", none},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.has("demo.web", "running", test.labels)
			f.set("GET /images/json", answer{body: `[{"Id":"` + test.image + `","RepoTags":["box:1"]}]`})
			inv, err := f.open().Observe(t.Context(), providers.Query{Known: []providers.Known{
				{Address: box, Kind: spec.Image, Name: "demo.box", Want: text("ref", "box:1")},
				{Address: web, Kind: spec.Container, Name: "demo.web", Want: text("image", test.wanted)},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, show(inv, spec.Image)); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
		})
	}
}

// Another image got the name of the one that is to be made, after the plan: it keeps it.
//
// row E36, of an image that came after the plan
func TestNameIsTakenMeanwhile(t *testing.T) {
	box := spec.Address{Kind: spec.Image, Name: "box"}
	f := newFake(t)
	p := f.open()
	want := cty.ObjectVal(map[string]cty.Value{"ref": cty.StringVal("box:1")})
	steps, err := p.Steps(providers.Change{Address: box, Kind: spec.Image, Action: providers.Create, Name: "demo.box", ID: token, Want: want})
	if err != nil || len(steps) != 1 {
		t.Fatalf("steps %v, %v", steps, err)
	}
	f.set("GET /images/json", answer{body: `[{"Id":"sha256:theirs","RepoTags":["box:1"]}]`})
	_, err = p.Do(t.Context(), providers.Work{Step: steps[0], Want: want}, func(providers.Progress) {})
	if err == nil || !strings.Contains(err.Error(), "an image docker.io/library/box:1 exists (sha256:theirs), and the plan was made when there was none") {
		t.Errorf("error %v", err)
	}
	if len(f.asked) > 0 {
		t.Errorf("asked %q", f.asked)
	}
}
