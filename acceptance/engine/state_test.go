//go:build linux

package engine_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// restless is quick with a container that the engine always starts again, and that fails at once while its volume has a file for it.
var restless = strings.NewReplacer(
	"trap 'exit 0' TERM; echo begun >>/data/log;", "if test -e /data/fail; then exit 3; fi; trap 'exit 0' TERM;",
	"  memory  =", "  restart = \"always\"\n  state   = STATE\n  memory  =",
	"  mount {", "  # more\n\n  mount {",
).Replace(quick)

// finds brings container.web to a state of the engine's, past vmctl.
func (p *project) finds(state string) {
	p.t.Helper()
	const web = "/containers/demo.web"
	p.t.Cleanup(func() { p.hold(false) })
	p.edit("STATE", `"created"`, "# more", "")
	p.d.must("DELETE", web+"?force=1", "")
	p.run(0, "apply", "--auto-approve")
	if state == "created" {
		return
	}
	p.d.must("POST", web+"/start", "")
	switch state {
	case "running":
	case "paused":
		p.d.must("POST", web+"/pause", "")
	case "exited":
		p.d.must("POST", web+"/stop", "")
	case "restarting":
		if err := os.WriteFile(p.failing(), nil, 0o600); err != nil {
			p.t.Fatal(err)
		}
		p.d.must("POST", web+"/restart", "")
	case "dead":
		p.d.must("POST", web+"/stop", "")
		p.hold(true)
		if out, err := p.d.ask("DELETE", web, ""); err == nil {
			p.t.Fatalf("it is removed, although a file of it cannot be: %s", out)
		}
		p.hold(false)
	default:
		p.t.Fatalf("nobody knows how to make it %s", state)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		now := p.container().State.Status
		if now == state {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("it is %s, and not %s", now, state)
		}
	}
}

// failing returns the path of the file that has the container fail.
func (p *project) failing() string {
	return filepath.Join(p.d.dir, "data", "volumes", "demo.data", "_data", "fail")
}

// hold has a file of the container that nobody can remove, not even the engine, or lets go of it.
func (p *project) hold(on bool) {
	p.t.Helper()
	all, err := filepath.Glob(filepath.Join(p.d.dir, "data", "containers", "*", "held"))
	if on && err == nil {
		all = []string{filepath.Join(p.d.dir, "data", "containers", p.container().ID, "held")}
		err = os.WriteFile(all[0], nil, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	for _, path := range all {
		flag := "-i"
		if on {
			flag = "+i"
		}
		if out, err := exec.Command("chattr", flag, path).CombinedOutput(); err != nil {
			p.t.Fatalf("chattr %s %s: %v: %s", flag, path, err, out)
		}
	}
}

// Each wanted state is reached from each state that a real engine can have, by one apply, and a plan shows no difference then. What
// is created is met by every state that does not run; what is unmanaged stays as it is. Where the engine starts a container again
// and again, and that is to be created, each plan shows it once, and each apply ends it once.
//
// row E39
func TestStatesOfTheEngine(t *testing.T) {
	d := newDaemon(t)
	p := projectOf(t, d, restless)
	p.edit("STATE", `"created"`, "# more", "")
	p.run(0, "apply", "--auto-approve")
	edit := regexp.MustCompile(`(?m)^ +state  \S+ → \S+ \(applies: `)
	found := []string{"created", "running", "paused", "restarting", "exited", "dead"}
	for _, test := range []struct {
		want string
		all  []string // of each found: what the engine has then; "": as before, and nothing is planned
	}{
		{"running", []string{"running", "", "running", "", "running", "running"}},
		{"created", []string{"", "exited", "exited", "exited", "", ""}},
		{"paused", []string{"paused", "paused", "", "fails", "paused", "paused"}},
		{"unmanaged", []string{"", "", "", "", "", ""}},
	} {
		for i, state := range found {
			name := fmt.Sprintf("%s from %s", test.want, state)
			p.finds(state)
			before := p.container().ID
			wanted, block := strconv.Quote(test.want), ""
			if test.want == "unmanaged" { // as a record says that it is to run
				wanted, block = `"running"`, "lifecycle {\n    ignore_changes = [state]\n  }"
			}
			p.edit("STATE", wanted, "# more", block)
			if test.want == "unmanaged" { // that a block ignores more is recorded
				p.run(0, "apply", "--auto-approve")
			}
			switch then := test.all[i]; then {
			case "fails":
				p.run(2, "plan", "--detailed-exitcode")
				says(t, p.run(1, "apply", "--auto-approve"), "is restarting, wait until the container is running")
			case "":
				out := p.runWith(nil, "plan", "--detailed-exitcode")
				if edit.MatchString(out.stdout) {
					t.Errorf("%s: the plan says\n%s", name, out.stdout)
				}
				p.run(0, "apply", "--auto-approve")
				p.run(0, "plan", "--detailed-exitcode")
				if now := p.container(); now.ID != before || now.State.Status != state && state != "restarting" {
					t.Errorf("%s: it is %+v", name, now)
				}
			default:
				out := p.run(2, "plan", "--detailed-exitcode")
				if n := len(edit.FindAllString(out, -1)); n != 1 {
					t.Errorf("%s: the plan shows its state %d times:\n%s", name, n, out)
				}
				p.run(0, "apply", "--auto-approve")
				p.run(0, "plan", "--detailed-exitcode")
				if now := p.container(); (now.ID != before) != (state == "dead") || now.State.Status != then {
					t.Errorf("%s: it is %+v, and was %s", name, now, before)
				}
			}
			if err := os.RemoveAll(p.failing()); err != nil {
				t.Fatal(err)
			}
		}
	}

	p.finds("created")
	for range 3 {
		d.must("POST", "/containers/demo.web/start", "")
		out := p.run(2, "plan", "--detailed-exitcode")
		if strings.Count(out, "state is running, and vmctl applied created") != 1 || strings.Count(out, " stop ") != 1 {
			t.Errorf("it was started by hand, and the plan says\n%s", out)
		}
		p.run(0, "apply", "--auto-approve")
		p.run(0, "plan", "--detailed-exitcode")
	}
	p.run(0, "destroy", "--auto-approve")
}
