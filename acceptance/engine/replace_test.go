//go:build linux

package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// names lists the containers of the engine.
func (p *project) names() []string {
	p.t.Helper()
	var all []string
	for _, c := range listed[struct{ Names []string }](p.d, "/containers/json?all=1") {
		all = append(all, c.Names...)
	}
	slices.Sort(all)
	return all
}

// token returns the label that tells container.web from its successors.
func (p *project) token() string {
	p.t.Helper()
	return read[struct {
		Config struct{ Labels map[string]string }
	}](p.d, "/containers/demo.web/json").Config.Labels["vmctl.token"]
}

// parkByHand brings container.web to where a run that is killed in the middle of a replacement leaves it.
func (p *project) parkByHand() {
	p.t.Helper()
	name := "demo.web.vmctl-" + p.token()[:8]
	p.d.must("POST", "/containers/demo.web/stop?t=30", "")
	p.d.must("POST", "/containers/demo.web/rename?name="+name, "")
}

// A replaced container waits until its successor runs, and comes back if that fails. The volume keeps what both wrote.
//
// row E33, of a container that is replaced
func TestReplacement(t *testing.T) {
	d := sharedDaemon(t)
	p := newProject(t, d)
	p.edit("echo begun >>/data/log; ", "echo begun >>/data/log; cat /data/log; ")
	p.applies()
	first := p.container()

	p.edit(`"trap`, `"exit 3; trap`)
	out := p.run(1, "apply", "--auto-approve")
	if !strings.Contains(out, "it ended at once with status 3") || !strings.Contains(out, "demo.web runs again as it was before") {
		t.Errorf("apply says\n%s", out)
	}
	if now := p.container(); now.ID != first.ID || now.State.Status != "running" {
		t.Errorf("after a failed replacement it is %+v, and was %+v", now, first)
	}
	if out := p.run(2, "plan", "--detailed-exitcode"); !strings.Contains(out, "1 to replace") {
		t.Errorf("after a failed replacement the plan says\n%s", out)
	}

	p.edit(`"trap`, `"true; trap`)
	p.applies()
	second := p.container()
	if second.ID == first.ID || second.State.Status != "running" {
		t.Errorf("after a replacement it is %+v, and was %+v", second, first)
	}
	if got := strings.Count(d.must("GET", "/containers/demo.web/logs?stdout=1", ""), "begun"); got != 3 {
		t.Errorf("the volume has %d lines of the starts, want 3", got)
	}

	p.parkByHand()
	p.applies()
	if now := p.container(); now.ID != second.ID || now.State.Status != "running" {
		t.Errorf("parked by a run that was killed, it is %+v now, and was %+v", now, second)
	}

	p.parkByHand()
	p.edit(`"trap`, `"true; true; trap`)
	p.applies()
	if now := p.container(); now.ID == second.ID || now.State.Status != "running" {
		t.Errorf("parked by a run that was killed and edited, it is %+v now, and was %+v", now, second)
	}

	const left = `{"Image":"demo/box:1","Cmd":["sleep","1000"],"HostConfig":{"Binds":["demo.data:/data"]},"Labels":{
		"vmctl.id":"k7m2qd9x4r","vmctl.project":"demo","vmctl.address":"container.web","vmctl.token":"bbbbbbbb-0000-8000-8000-000000000000","vmctl.name":"demo.web"}}`
	d.must("POST", "/containers/create?name=demo.web.vmctl-bbbbbbbb", left)
	p.applies()
	if got := fmt.Sprint(p.names()); got != "[/demo.web]" {
		t.Errorf("after all replacements there are %s", got)
	}

	d.must("POST", "/containers/create?name=demo.web.vmctl-bbbbbbbb", left)
	p.run(0, "destroy", "--auto-approve")
	if got := p.names(); len(got) > 0 {
		t.Errorf("destroy left %q", got)
	}
}
