//go:build linux

package engine_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inventory has the containers, images and volumes of an engine, with their IDs.
func (d *daemon) inventory() string {
	d.t.Helper()
	var all []string
	for _, o := range listed[struct{ ID, State string }](d, "/containers/json?all=1") {
		all = append(all, o.ID+" "+o.State)
	}
	for _, o := range listed[struct{ ID string }](d, "/images/json") {
		all = append(all, o.ID)
	}
	for _, o := range read[struct {
		Volumes []struct{ Name, CreatedAt string }
	}](d, "/volumes").Volumes {
		all = append(all, o.Name+" "+o.CreatedAt)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// states returns what status says of each resource: its state, its conditions, and whether all are settled.
func (p *project) states() string {
	p.t.Helper()
	var doc struct {
		Settled   struct{ Status string }
		Resources []struct {
			Address, State string
			Conditions     []struct{ Type, Status string }
		}
	}
	if err := json.Unmarshal([]byte(p.run(0, "status", "--json")), &doc); err != nil {
		p.t.Fatal(err)
	}
	lines := []string{"settled " + doc.Settled.Status}
	for _, r := range doc.Resources {
		line := r.Address + " " + r.State
		for _, c := range r.Conditions {
			line += " " + c.Type + "=" + c.Status
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// Nothing in an engine of type containerd is applicable: no plan reads, makes or removes it, whatever its blocks say. Once the type
// is moby again, all of it is there, and nothing was made twice. A wait for its readiness would end with another exit code, for nobody
// listens on its socket.
//
// row E46, of an engine on this host
// row E01
func TestEngineType(t *testing.T) {
	d := newDaemon(t)
	p := newProject(t, d)
	p.applies()
	before := d.inventory()
	says := func(out string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("it does not say %q:\n%s", want, out)
			}
		}
	}

	const host = `host = "unix://SOCKET"`
	containerd := `type = "containerd"
  host = "unix://` + filepath.Join(d.dir, "x", "containerd", "containerd.sock") + `"`
	p.edit(host, containerd)
	says(p.run(2, "plan", "--detailed-exitcode"), "engine.here update", "moby → containerd", "Not applicable", "container.web, image.box, volume.data", "3 not applicable")
	says(p.run(0, "apply", "--auto-approve"), "type switched")
	says(p.run(0, "plan", "--detailed-exitcode"), "Not applicable", `engine.here has type = "containerd"`)
	if now := d.inventory(); now != before {
		t.Errorf("the switch changed what is in the engine from\n%s\nto\n%s", before, now)
	}
	want := `settled true
container.web not_applicable spec.applied=not_applicable
engine.here present engine.ready=not_applicable spec.applied=true
image.box not_applicable spec.applied=not_applicable
volume.data not_applicable spec.applied=not_applicable`
	if got := p.states(); got != want {
		t.Errorf("status says\n%s\nwant\n%s", got, want)
	}
	for _, command := range [][]string{{"engine", "watch", "here"}, {"engine", "exec", "here", "--", "docker", "ps"}, {"cleanup", "--auto-approve", "engine.here/volume/demo.data"}} {
		code := 6
		if command[1] == "exec" {
			code = 255
		}
		says(p.run(code, command...), `has type = "containerd"`)
	}
	says(p.run(6, "container", "stop", "web"), `engine.here has type = "containerd"`)

	// Neither an edit nor the end of a block does anything, and the engine may be off.
	p.edit("32MiB", "48MiB")
	volume := "volume \"data\" {\n  engine = engine.here\n}\n"
	mount := "  mount {\n    volume = volume.data\n    target = \"/data\"\n  }\n"
	p.edit(volume, "", mount, "")
	p.run(0, "plan", "--detailed-exitcode")
	p.edit(volume, volume, mount, mount)
	d.stop()
	says(p.run(0, "plan", "--detailed-exitcode"), "nobody can connect to unix://")
	says(p.run(6, "destroy", "--auto-approve"), "what is inside of it cannot be removed")
	spec := p.main
	p.main = spec[:strings.Index(spec, "engine")] // no block is left
	p.edit()
	says(p.run(6, "apply", "--auto-approve"), "engine.here", "is inside of it, and is to be kept")
	p.main = spec
	d.start()

	p.edit("32MiB", "32MiB", host, `host = "unix://`+d.socket()+`"`)
	says(p.run(2, "plan", "--detailed-exitcode"), "engine.here update", "container.web, image.box, volume.data read after engine.here is ready")
	p.applies()
	before = strings.ReplaceAll(before, " running", "")
	if now := strings.ReplaceAll(d.inventory(), " running", ""); now != before {
		t.Errorf("after moby, containerd, moby there is in the engine\n%s\nwant\n%s", now, before)
	}

	// Docker's engine may have ended before the files say so.
	d.stop()
	p.edit(host, containerd)
	says(p.run(2, "plan", "--detailed-exitcode"), "moby → containerd")
	p.run(0, "apply", "--auto-approve")
	d.start()
	p.edit(host, `host = "unix://`+d.socket()+`"`)
	p.applies()
	p.run(0, "destroy", "--auto-approve")
	if left := strings.TrimSpace(d.must("GET", "/containers/json?all=1", "")); left != "[]" {
		t.Errorf("containers are left: %s", left)
	}
}
