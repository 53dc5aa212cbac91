//go:build linux

package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A limit that somebody has set by hand, and that no attribute is about, outlives the edits of those that are.
//
// row E19, of the limits of a container
func TestLimitsOfOthersStay(t *testing.T) {
	d := sharedDaemon(t)
	p := newProject(t, d)
	p.applies()
	first := p.container()
	d.must("POST", "/containers/demo.web/update", `{"PidsLimit":77,"CpuShares":512}`)
	p.run(0, "plan", "--detailed-exitcode")
	p.edit("32MiB", "48MiB", "0.3", "0.299")
	p.applies()
	now := read[struct {
		ID         string
		HostConfig struct {
			Memory, NanoCPUs     int64
			PidsLimit, CPUShares int64
		}
	}](d, "/containers/demo.web/json")
	if c := now.HostConfig; now.ID != first.ID || c.Memory != 48<<20 || c.NanoCPUs != 299_000_000 || c.PidsLimit != 77 || c.CPUShares != 512 {
		t.Errorf("after an edit of memory and cpus, it is %+v; want the limits of 77 processes and 512 shares to stay", now)
	}
}

// An engine that was out of reach, and comes back as it was, changes nothing in the state: what is in it is known by the IDs of
// the engine.
//
// row E21
func TestStateAfterDisconnect(t *testing.T) {
	d := sharedDaemon(t)
	p := newProject(t, d)
	p.applies()
	before := p.state()
	p.run(0, "apply", "--auto-approve")
	if now := p.state(); now != before {
		t.Errorf("an apply without a change made the state\n%s\nof\n%s", now, before)
	}
	away := d.socket() + ".away"
	if err := os.Rename(d.socket(), away); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Rename(away, d.socket()) }) //nolint:errcheck // only a test that failed leaves it there
	p.run(6, "apply", "--auto-approve")
	if err := os.Rename(away, d.socket()); err != nil {
		t.Fatal(err)
	}
	p.run(0, "apply", "--auto-approve")
	if now := p.state(); now != before {
		t.Errorf("after the engine was out of reach, the state is\n%s\nand was\n%s", now, before)
	}
}

// state returns the text of the state file.
func (p *project) state() string {
	p.t.Helper()
	all, err := filepath.Glob(filepath.Join(p.home, "vmctl", "*", "state.json"))
	if err != nil || len(all) != 1 {
		p.t.Fatalf("the states of the project are %v, %v", all, err)
	}
	text, err := os.ReadFile(all[0])
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// An image with two names has a record for each: a name that goes takes only its own with it. An image without a name is
// listed by its ID until it gets one.
//
// row E31
func TestNamesOfOneImage(t *testing.T) {
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
	p.applies()

	d.must("DELETE", "/images/demo/other:2", "")
	if out := p.run(2, "plan", "--detailed-exitcode"); !strings.Contains(out, "1 to create, 4 unchanged") || !strings.Contains(out, "image.other") || strings.Contains(out, "image.box") {
		t.Errorf("one of two names was removed by hand, and the plan says\n%s", out)
	}
	p.applies()
	before := p.container()
	p.main = main // the block goes, and its name with it
	p.edit()
	p.applies()
	if got := strings.Join(d.tags(), " "); got != "demo/box:1" || p.container().ID != before.ID {
		t.Errorf("with the block of one of two names gone, the names are %s, and the container is %+v", got, p.container())
	}
	if out := p.run(0, "state", "list"); strings.Contains(out, "image.other") || !strings.Contains(out, "image.box") {
		t.Errorf("the records are\n%s", out)
	}

	// An image is made without a name, and gets one later.
	p.edit("host = \"unix", "unmanaged {\n    images = \"report\"\n  }\n  host = \"unix")
	p.applies()
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(d.must("POST", "/commit?container=demo.web&pause=0", "{}")), &made); err != nil {
		t.Fatal(err)
	}
	if out := p.run(0, "plan"); strings.Count(out, "unmanaged") != 1 || !strings.Contains(out, made.ID) {
		t.Errorf("the image %s without a name is no finding:\n%s", made.ID, out)
	}
	d.must("POST", "/images/"+made.ID+"/tag?repo=demo/again&tag=3", "")
	if out := p.run(0, "plan"); strings.Count(out, "demo/again:3") == 0 || strings.Contains(out, `image "sha256:`) {
		t.Errorf("the image got a name, and the plan says\n%s", out)
	}
}

// tags returns the names of the images of the engine.
func (d *daemon) tags() []string {
	d.t.Helper()
	var all []string
	for _, i := range listed[struct{ RepoTags []string }](d, "/images/json") {
		all = append(all, i.RepoTags...)
	}
	return all
}
