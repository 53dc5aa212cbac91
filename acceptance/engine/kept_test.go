//go:build linux

package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// What others have set of a container outlives everything that vmctl does to it: looks, edits that apply live, and replacements, also
// those that take the container away before its successor is made. What vmctl has set itself goes with its attribute.
//
// row E19
func TestWhatOthersSetStays(t *testing.T) {
	d := newDaemon(t)
	p := projectOf(t, d, strings.Replace(main, "memory  =", "labels  = { ours = \"one\", gone = \"soon\" }\n  memory  =", 1))
	p.applies()
	p.labelByHand("team.owner", "ann")
	p.applies()
	first := p.kept("at first", "gone=soon ours=one team.owner=ann")
	d.must("POST", "/containers/demo.web/update", `{"PidsLimit":77,"CpuShares":512,"MemoryReservation":16777216}`)
	p.run(0, "plan", "--detailed-exitcode")

	p.edit("32MiB", "48MiB")
	p.applies()
	p.limits("after an edit that applies live", 48<<20)
	if now := p.kept("after an edit that applies live", "gone=soon ours=one team.owner=ann"); now != first {
		t.Errorf("an edit that applies live has replaced it")
	}
	p.edit(`MODE = "one"`, `MODE = "two"`, `ours = "one", gone = "soon"`, `ours = "two"`)
	p.applies()
	p.limits("after a replacement", 48<<20)
	second := p.kept("after a replacement", "ours=two team.owner=ann")
	if second == first {
		t.Errorf("an edit of its environment has not replaced it")
	}

	// Its volume is replaced, too: the container goes before.
	p.run(0, "apply", "--auto-approve", "--replace=volume.data")
	p.limits("after its volume was replaced", 48<<20)
	if now := p.kept("after its volume was replaced", "ours=two team.owner=ann"); now == second {
		t.Errorf("its volume was replaced, and the container was not")
	}
	p.run(0, "plan", "--detailed-exitcode")

	// A limit that an edit gave it while it ran goes with its attribute, too.
	p.edit("cpus    = 0.3", "", "32MiB", "64MiB")
	p.applies()
	p.limits("without a limit of CPUs", 64<<20)
	p.edit(`memory  = "32MiB"`, "")
	p.applies()
	p.limits("without a limit of memory", 0)
	p.kept("without a limit of memory", "ours=two team.owner=ann")

	// Memory has an attribute: a limit that others set is drift, and one apply ends it.
	d.must("POST", "/containers/demo.web/update", `{"Memory":67108864,"MemorySwap":67108864}`)
	p.run(2, "plan", "--detailed-exitcode")
	p.applies()
	p.limits("after a limit of memory that was set by hand", 0)
	p.run(0, "plan", "--detailed-exitcode")
}

// A run that is killed in the middle of a replacement takes the record of the old container with it. The next one still tells what
// vmctl has set of that container from what others have.
//
// row E19, of a replacement that is killed
func TestWhatOthersSetStaysAfterAKill(t *testing.T) {
	d := newDaemon(t)
	p, x := throughProxy(t, d)
	p.main = strings.Replace(p.main, "memory  =", "labels  = { ours = \"one\", gone = \"soon\" }\n  memory  =", 1)
	p.edit()
	p.applies()
	p.labelByHand("team.owner", "ann")
	p.applies()
	d.must("POST", "/containers/demo.web/update", `{"PidsLimit":77,"CpuShares":512,"MemoryReservation":16777216}`)
	first := p.kept("at first", "gone=soon ours=one team.owner=ann")

	p.edit(`"one"`, `"two"`, `, gone = "soon"`, "", `memory  = "32MiB"`, "")
	p.struck(func(strike func()) { x.arm("/containers/create?", early, strike) }, "apply", "--auto-approve")
	p.applies()
	if now := p.kept("after a replacement that was killed", "ours=two team.owner=ann"); now == first {
		t.Errorf("it is not replaced")
	}
	p.limits("after a replacement that was killed", 0)
	if got := fmt.Sprint(p.names()); got != "[/demo.web]" {
		t.Errorf("after a replacement that was killed there are %s", got)
	}
	p.run(0, "plan", "--detailed-exitcode")
}

// labelByHand adds a label to container.web, in the only way that there is: in the files of the engine.
func (p *project) labelByHand(name, value string) {
	p.t.Helper()
	path := filepath.Join(p.d.dir, "data", "containers", p.container().ID, "config.v2.json")
	p.d.stop()
	text, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	var all, config map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		p.t.Fatal(err)
	}
	config, _ = all["Config"].(map[string]any)
	labels, ok := config["Labels"].(map[string]any)
	if !ok {
		p.t.Fatalf("the engine's file has no labels: %s", text)
	}
	labels[name] = value
	if text, err = json.Marshal(all); err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.d.start()
}

// kept checks the labels of container.web but for those of vmctl, and what was set by hand of its limits. It returns its ID.
func (p *project) kept(when, want string) string {
	p.t.Helper()
	now := read[struct {
		ID     string
		Config struct{ Labels map[string]string }
	}](p.d, "/containers/demo.web/json")
	var labels []string
	for name, value := range now.Config.Labels {
		if !strings.HasPrefix(name, "vmctl.") {
			labels = append(labels, name+"="+value)
		}
	}
	slices.Sort(labels)
	if got := strings.Join(labels, " "); got != want {
		p.t.Errorf("%s its labels are %s, want %s", when, got, want)
	}
	return now.ID
}

// limits checks what was set by hand of the limits of container.web.
func (p *project) limits(when string, memory int64) {
	p.t.Helper()
	now := read[struct {
		HostConfig struct{ Memory, MemoryReservation, PidsLimit, CPUShares int64 }
	}](p.d, "/containers/demo.web/json").HostConfig
	if now.Memory != memory || now.PidsLimit != 77 || now.CPUShares != 512 || now.MemoryReservation != 16<<20 {
		p.t.Errorf("%s its limits are %+v, want %d bytes, and those that were set by hand: 77 processes, 512 shares, 16777216 bytes reserved", when, now, memory)
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
