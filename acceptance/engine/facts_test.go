//go:build linux

package engine_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// told holds what status and show tell of an object of an engine.
type told struct {
	Names, Ports, Digests                          []string
	Image, Path, Created, Started, Ended, Platform string
	Size                                           *int64
	Labels                                         map[string]string
}

// What status and show tell of the objects of an engine, declared ones and others.
//
// row E57
func TestInventoryFacts(t *testing.T) {
	d := sharedDaemon(t)
	p := newProject(t, d)
	p.applies()
	d.must("POST", "/volumes/create", `{"Name":"old","Labels":{"by":"hand"}}`)
	d.must("POST", "/containers/create?name=theirs", `{"Image":"demo/box:1","Cmd":["sleep","1000"],"Labels":{"by":"hand"}}`)
	var doc struct {
		Resources []struct {
			Address string
			Facts   *told
		}
		Undeclared []struct {
			Inside, Kind, Name, ID string
			Facts                  *told
		}
	}
	read := func(into any, args ...string) {
		t.Helper()
		if err := json.Unmarshal([]byte(p.runWith(nil, append(args, "--json")...).stdout), into); err != nil {
			t.Fatal(err)
		}
	}
	read(&doc, "status")
	declared, undeclared := map[string]*told{}, map[string]*told{}
	for _, r := range doc.Resources {
		declared[r.Address] = r.Facts
	}
	for _, o := range doc.Undeclared {
		if o.Inside != "engine.here" || o.ID == "" {
			t.Errorf("%s %s is in %q, and has the ID %q", o.Kind, o.Name, o.Inside, o.ID)
		}
		undeclared[o.Kind+" "+o.Name] = o.Facts
	}
	for name, f := range map[string]*told{
		"container.web": declared["container.web"], "image.box": declared["image.box"], "volume.data": declared["volume.data"],
		"volume old": undeclared["volume old"], "container theirs": undeclared["container theirs"], "network bridge": undeclared["network bridge"],
	} {
		switch {
		case f == nil:
			t.Errorf("nothing is told of %s: %+v", name, doc)
		case len(f.Names) == 0 || f.Created == "" && name != "image.box": // built from scratch, it is of no time
			t.Errorf("of %s it is told: %+v", name, *f)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	web, image, theirs := declared["container.web"], declared["image.box"], undeclared["container theirs"]
	if web.Image == "" || web.Path == "" || web.Started == "" || web.Ended != "" || web.Platform != "linux" || web.Size == nil || web.Labels["vmctl.name"]+web.Labels["vmctl.address"] == "" {
		t.Errorf("of container.web it is told: %+v", *web)
	}
	if theirs.Path != "sleep" || theirs.Started != "" || theirs.Labels["by"] != "hand" || undeclared["volume old"].Labels["by"] != "hand" || !strings.HasSuffix(undeclared["volume old"].Path, "/old/_data") {
		t.Errorf("of theirs it is told: %+v and %+v", *theirs, *undeclared["volume old"])
	}
	if !strings.HasPrefix(image.Platform, "linux/") || image.Size == nil || *image.Size == 0 {
		t.Errorf("of image.box it is told: %+v", *image)
	}
	if _, is := undeclared["container demo.web"]; is {
		t.Error("what is declared is among the others")
	}
	var shown struct{ Status struct{ Facts *told } }
	if read(&shown, "show", "container.web"); shown.Status.Facts == nil || shown.Status.Facts.Path != web.Path {
		t.Errorf("show tells: %+v", shown.Status.Facts)
	}
	says(t, p.run(0, "show", "container.web"), "Facts", "started", web.Started)
	if out := p.run(0, "status"); strings.Contains(out, "theirs") {
		t.Errorf("the table lists what is not declared:\n%s", out)
	}
}
