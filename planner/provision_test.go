package planner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// ran lets scripts of vm.a have run as they were applied.
func (s *scene) ran(names ...string) {
	a := addr(s.t, "vm.a")
	r := s.state.Records[a]
	r.Provisions = map[string]state.Provision{}
	for _, name := range names {
		block := r.Values.GetAttr("provision").GetAttr(name)
		r.Provisions[name] = state.Provision{Digest: s.options.DigestKey.Provision(r.ID, name, block), Starts: r.Starts}
	}
	s.state.Records[a] = r
}

// remembers changes what the record of vm.a says of the script x.
func (s *scene) remembers(change func(*state.Provision, *state.Record)) {
	a := addr(s.t, "vm.a")
	r := s.state.Records[a]
	p := r.Provisions["x"]
	change(&p, &r)
	r.Provisions = map[string]state.Provision{"x": p}
	s.state.Records[a] = r
}

// histories lists what can have become of a script before a plan.
var histories = []struct {
	name    string
	applied string // the script that ran; "": "true", as wanted
	change  func(*scene)
}{
	{name: "never", change: func(s *scene) { s.remembers(func(p *state.Provision, _ *state.Record) { *p = state.Provision{} }) }},
	{name: "ran", change: func(*scene) {}},
	{name: "ran, other script", applied: "other", change: func(*scene) {}},
	{name: "ran, started since", change: func(s *scene) { s.remembers(func(_ *state.Provision, r *state.Record) { r.Starts++ }) }},
	{name: "failed", change: func(s *scene) {
		s.remembers(func(p *state.Provision, _ *state.Record) { *p = state.Provision{Failed: "status 3"} })
	}},
	{name: "ran, failed since", change: func(s *scene) { s.remembers(func(p *state.Provision, _ *state.Record) { p.Failed = "status 3" }) }},
	{name: "interrupted", change: func(s *scene) { s.interrupt("vm.a", providers.OpProvision("x")) }},
	{name: "record lost", change: func(s *scene) { s.forget("vm.a") }},
	{name: "made by a run that was killed", change: func(s *scene) {
		s.remembers(func(p *state.Provision, r *state.Record) { *p, r.Reserved = state.Provision{}, true })
	}},
}

// worlds lists what the plan does with the VM beside.
var worlds = []struct {
	name   string
	change func(*scene)
}{
	{name: "stays up", change: func(*scene) {}},
	{name: "starts", change: func(s *scene) { s.off() }},
	{name: "restarts", change: func(s *scene) { s.options.Restart = map[spec.Address]bool{addr(s.t, "vm.a"): true} }},
	{name: "made again", change: func(s *scene) { s.lose("vm.a") }},
	{name: "stays off", change: func(s *scene) {
		s.off()
		s.config = load(s.t, strings.Replace(provisioned("script = \"true\"\n    run = \""+s.runs()+"\""), "{\n", "{\n  running = false\n", 1))
	}},
}

// runs returns the value of run of the script x.
func (s *scene) runs() string {
	r, _ := s.config.Resource(addr(s.t, "vm.a"))
	return r.Want.GetAttr("provision").GetAttr("x").GetAttr("run").AsString()
}

// Whether a script runs is decided by its run, by what the record says of its earlier runs, and by what the
// plan does with the VM: never by the guest.
func TestWhenScriptsRun(t *testing.T) {
	var got strings.Builder
	for _, run := range []string{"once", "on_change", "each_start"} {
		for _, h := range histories {
			for _, w := range worlds {
				applied := provisioned(`script = "true"` + "\n    run = \"" + run + "\"")
				s := after(t, applied)
				s.ran("x")
				if h.applied != "" {
					s = after(t, strings.Replace(applied, `"true"`, `"`+h.applied+`"`, 1))
					s.ran("x")
					s.config = load(t, applied)
				}
				h.change(s)
				w.change(s)
				p, err := s.plan()
				if err != nil {
					t.Fatal(err)
				}
				var reasons []string
				for _, step := range p.Steps {
					if step.Provision != "" {
						reasons = append(reasons, reasonOf(p, step))
					}
				}
				fmt.Fprintf(&got, "%-10s | %-29s | %-10s | %s\n", run, h.name, w.name, strings.Join(append(reasons, "")[:max(1, len(reasons))], "; "))
			}
		}
	}
	path := filepath.Join("testdata", "provision.golden")
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got), UPDATE=1 writes it:\n%s", path, diff)
	}
}

func reasonOf(p *planner.Plan, s planner.Step) string {
	for _, script := range p.Changes[s.Change].Provisions {
		if script.Name == s.Provision {
			return script.Reason
		}
	}
	return "no reason"
}

// Scripts run in the order in which they are written, once the VM is ready, and before what is inside of it
// is made.
func TestOrderOfScripts(t *testing.T) {
	source := "vm \"a\" {\n  provision \"z\" {\n    script = \"1\"\n  }\n  provision \"b\" {\n    script = \"2\"\n  }\n}\n"
	s := after(t, "# empty\n")
	s.config = load(t, source+note)
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	const want = "0 define vm.a\n1 start vm.a after 0\n2 wait_ssh vm.a after 1\n3 provision z vm.a after 2\n4 provision b vm.a after 3\n5 make box.note after 0,1,2,3,4\n6 open box.note after 0,1,2,3,4,5\n"
	if got := text(p); !strings.HasSuffix(got, want) {
		t.Errorf("steps: got\n%swant\n%s", got, want)
	}
}

// An edit that is known only during apply takes nothing down.
func TestUnknownVariablesOfScripts(t *testing.T) {
	const other = "vm \"b\" {\n}\n"
	s := after(t, provisioned("script = \"true\"\n    run = \"on_change\""))
	s.ran("x")
	s.config = load(t, provisioned("script = \"true\"\n    run = \"on_change\"\n    env = { B = vm.b.address }")+other)
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Changes {
		if c.Address.String() == "vm.a" && (c.Action != providers.Update || !c.Provisions[0].IfChanged) {
			t.Errorf("vm.a: got %s, scripts %+v; want an update that runs x if its variables change", c.Action, c.Provisions)
		}
	}
}

// With NoWait, nothing waits for a VM that nothing else in the plan needs.
func TestNoWait(t *testing.T) {
	s := after(t, "vm \"c\" {}\n")
	s.config = load(t, "vm \"c\" {}\n"+one+note+"vm \"b\" {}\n")
	s.options.NoWait = true
	s.check(`create box.note: it does not exist
create vm.a: it does not exist
create vm.b: it does not exist
0 define vm.a
1 define vm.b
2 start vm.a after 0
3 start vm.b after 1
4 wait_ssh vm.a after 2
5 make box.note after 0,2,4
6 open box.note after 0,2,4,5
`)
}

// A script needs a VM that is ready, also with NoWait. A command for the run state runs no script that was edited.
func TestScriptsAndOtherCommands(t *testing.T) {
	const run = "script = \"VALUE\"\n    run = \"on_change\""
	s := after(t, provisioned(strings.Replace(run, "VALUE", "one", 1)))
	s.config = load(t, provisioned(strings.Replace(run, "VALUE", "two", 1)))
	s.ran("x")
	s.options.Running = map[spec.Address]bool{addr(t, "vm.a"): true}
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text(p), "0 provision") {
		t.Errorf("the plan is\n%s", text(p))
	}
	s.options.Running, s.options.NoWait = nil, true
	a := addr(t, "vm.a")
	r := s.state.Records[a]
	r.Conditions = nil
	s.state.Records[a] = r
	if p, err = s.plan(); err != nil {
		t.Fatal(err)
	}
	if got := text(p); !strings.Contains(got, "wait_ssh vm.a") || !strings.Contains(got, "provision x vm.a") {
		t.Errorf("the plan is\n%s", got)
	}
}
