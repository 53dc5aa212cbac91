package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

const (
	noAnswer = "no answer"
	here     = "qemu:///session"
)

// unknown is a fact that cannot be read, and the scene without it.
type unknown struct {
	fact string
	hide func(*scene)
}

// mutation is an action with the scene in which it is planned, and with the facts that
// it needs.
type mutation struct {
	action        providers.Action
	name          string
	applied, spec string // spec "": the one that was applied
	address       string
	build         func(*scene)
	needs         []unknown
}

// here returns the inventory of the scenes' system, with all of their VMs and disks.
func (s *scene) here() *providers.Inventory { return &s.system(here).inventory }

// unreachable is a system of which nothing can be read.
func unreachable() unknown {
	return unknown{"presence: the system does not answer", func(s *scene) {
		s.system(here).inventory = providers.Inventory{Partial: map[spec.Kind]*providers.Problem{spec.VM: providers.Refuse(noAnswer, nil), spec.Disk: providers.Refuse(noAnswer, nil)}}
	}}
}

// breaking is a system whose provider panics while it looks.
func breaking() unknown {
	return unknown{"presence: the provider panics", func(s *scene) { s.system(here).panics = "observe" }}
}

// unlisted is an object that is not seen, and may be there.
func unlisted(address string) unknown {
	return unknown{"presence: the listing is not complete", func(s *scene) {
		s.lose(address)
		s.here().Objects = slices.DeleteFunc(s.here().Objects, func(o providers.Object) bool { return o.Name == "theirs" })
		s.here().Partial = map[spec.Kind]*providers.Problem{addr(s.t, address).Kind: providers.Refuse(noAnswer, nil)}
	}}
}

// garbled is an object of which only the ID and the name are known. A system reports one, too, if
// it cannot read a mark.
func garbled(address string, fact string) unknown {
	return unknown{fact, func(s *scene) {
		a := addr(s.t, address)
		u := providers.Unknown{Kind: a.Kind, ID: planner.ObjectID(project, a, 0), Name: planner.ObjectName(project, a), Reason: noAnswer}
		for _, o := range s.here().Objects {
			if o.Name == "theirs" {
				u.ID, u.Name = o.ID, o.Name
			}
		}
		s.here().Objects = slices.DeleteFunc(s.here().Objects, func(o providers.Object) bool { return o.ID == u.ID })
		s.here().Unknown = append(s.here().Unknown, u)
	}}
}

// veiled is an object whose run state cannot be read.
func veiled(name string) unknown {
	return unknown{"the run state of " + name, func(s *scene) {
		for i := range s.here().Objects {
			if o := &s.here().Objects[i]; o.Name == name {
				o.Running, o.State, o.Unreadable = nil, "", map[string]string{"running": noAnswer}
				return
			}
		}
		s.t.Fatalf("no object %s", name)
	}}
}

// hidden is an attribute that cannot be read.
func hidden(name, attribute string) unknown {
	return unknown{"the attribute " + attribute, func(s *scene) {
		for i := range s.here().Objects {
			if o := &s.here().Objects[i]; o.Name == name {
				shown := o.Attrs.AsValueMap()
				delete(shown, attribute)
				o.Attrs, o.Unreadable = cty.ObjectVal(shown), map[string]string{attribute: noAnswer}
				return
			}
		}
		s.t.Fatalf("no object %s", name)
	}}
}

// seen lists the facts about an object that must be known before anything may be done with it.
func seen(address string, more ...unknown) []unknown {
	return append([]unknown{
		unreachable(), breaking(), unlisted(address), garbled(address, "presence: the object cannot be read"), garbled(address, "the mark"),
	}, more...)
}

func mutations() []mutation {
	const (
		memory    = "vm \"a\" {\n  memory = \"512MiB\"\n}\n"
		empty     = "# empty\n"
		forwarded = "vm \"%s\" {\n  port_forward {\n    guest = 80\n    host  = 8080\n  }\n}\n"
	)
	lost := func(s *scene) { s.forget("vm.a") }
	stale := func(s *scene) {
		o := s.objectOf("disk.cache")
		o.Findings = append(o.Findings, providers.Finding{Kind: providers.FindStaleLock, Evidence: []string{"pid 7 has it"}})
	}
	locked := func(s *scene) {
		stale(s)
		disk := addr(s.t, "disk.cache")
		s.options.Scope = planner.Scope{Targets: []spec.Address{disk}, Alone: true}
		s.options.Unlock = map[spec.Address]bool{disk: true}
	}
	offA := func(s *scene) { s.off() }
	return []mutation{
		{action: providers.Create, spec: one, address: "vm.a", needs: seen("vm.a")},
		{
			action: providers.Create, name: "made again", applied: one, spec: one, address: "vm.a", build: func(s *scene) { s.lose("vm.a") },
			needs: seen("vm.a"),
		},
		{
			action: providers.Create, name: "with a port that another frees", applied: fmt.Sprintf(forwarded, "b"), spec: fmt.Sprintf(forwarded, "a"), address: "vm.a",
			needs: seen("vm.a", veiled("demo.b")),
		},
		{
			action: providers.Update, applied: one, spec: memory, address: "vm.a",
			build: func(s *scene) {
				offA(s)
				s.config = load(s.t, strings.Replace(memory, "\n}", "\n  running = false\n}", 1))
			},
			needs: seen("vm.a", veiled("demo.a"), hidden("demo.a", "memory")),
		},
		{action: providers.RestartIt, applied: one, spec: memory, address: "vm.a", needs: seen("vm.a", veiled("demo.a"), hidden("demo.a", "memory"))},
		{
			action: providers.RestartIt, name: "by command", applied: one, address: "vm.a",
			build: func(s *scene) { s.options.Restart = map[spec.Address]bool{addr(s.t, "vm.a"): true} },
			needs: seen("vm.a", veiled("demo.a")),
		},
		{
			action: providers.Update, name: "with a disk that another frees", address: "vm.a",
			applied: cache + with("a") + with("b", "disk.cache"), spec: cache + with("a", "disk.cache") + with("b"),
			needs: []unknown{veiled("demo.b"), garbled("vm.b", "who has the disk"), unlistedOther("vm.b")},
		},
		{
			action: providers.Create, name: "with a disk that another frees", address: "vm.a",
			applied: cache + with("b", "disk.cache"), spec: cache + with("a", "disk.cache") + with("b"),
			needs: []unknown{veiled("demo.b"), garbled("vm.b", "who has the disk"), unlistedOther("vm.b")},
		},
		{
			action: providers.ReplaceIt, applied: one, address: "vm.a",
			spec:  "vm \"a\" {\n  memory = \"256MiB\"\n  accel = \"tcg\"\n  lifecycle {\n    on_change = { accel = \"replace\" }\n  }\n}\n",
			needs: seen("vm.a", veiled("demo.a"), hidden("demo.a", "accel")),
		},
		{action: providers.Destroy, applied: one, spec: empty, address: "vm.a", needs: seen("vm.a", veiled("demo.a"))},
		{
			action: providers.Destroy, name: "by command", applied: one, address: "vm.a", build: func(s *scene) { s.options.Destroy = true },
			needs: seen("vm.a", veiled("demo.a")),
		},
		{
			action: providers.Destroy, name: "of a disk that a VM uses", applied: cache + with("a", "disk.cache"), spec: empty, address: "disk.cache",
			needs: seen("disk.cache", veiled("demo.a"), garbled("vm.a", "who has it"), unlistedOther("vm.a")),
		},
		{
			action: providers.ReplaceIt, name: "of a disk that a VM uses", applied: cache + with("a", "disk.cache"),
			spec: strings.Replace(cache, "size", "format = \"raw\"\n  size", 1) + with("a", "disk.cache"), address: "disk.cache",
			build: func(s *scene) { s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, "disk.cache"): true} },
			needs: seen("disk.cache", veiled("demo.a"), garbled("vm.a", "who has it"), unlistedOther("vm.a")),
		},
		{
			action: providers.Update, name: "of a disk with a lock", applied: cache + with("a", "disk.cache"), address: "disk.cache",
			build: func(s *scene) {
				offA(s)
				stale(s)
			},
			needs: seen("disk.cache", veiled("demo.a"), garbled("vm.a", "the holder of the lock"), unlistedOther("vm.a")),
		},
		{
			action: providers.Destroy, name: "of a disk with a lock", applied: cache + with("a", "disk.cache"), spec: with("a"), address: "disk.cache",
			build: func(s *scene) {
				offA(s)
				stale(s)
			},
			needs: seen("disk.cache", garbled("vm.a", "the holder of the lock"), unlistedOther("vm.a")),
		},
		{action: providers.Start, applied: one, address: "vm.a", build: offA, needs: seen("vm.a", veiled("demo.a"))},
		{
			action: providers.Start, name: "by command", applied: one, address: "vm.a",
			build: func(s *scene) {
				offA(s)
				s.options.Running = map[spec.Address]bool{addr(s.t, "vm.a"): true}
			},
			needs: seen("vm.a", veiled("demo.a")),
		},
		{
			action: providers.Stop, applied: one, address: "vm.a", build: func(s *scene) { s.stays() },
			needs: seen("vm.a", veiled("demo.a")),
		},
		{action: providers.Adopt, applied: one, address: "vm.a", build: lost, needs: seen("vm.a", veiled("demo.a"))},
		{
			action: providers.Import, spec: imported, address: "vm.a", build: func(s *scene) { s.theirs() },
			needs: seen("vm.a", veiled("theirs")),
		},
		{
			action: providers.Import, name: "by command", spec: one, address: "vm.a",
			build: func(s *scene) {
				s.theirs()
				s.options.Imports = map[spec.Address]providers.ID{addr(s.t, "vm.a"): "theirs"}
			},
			needs: seen("vm.a", veiled("theirs")),
		},
		{
			action: providers.Forget, applied: one, spec: empty, address: "vm.a", build: func(s *scene) { s.lose("vm.a") },
			needs: seen("vm.a"),
		},
		{
			action: providers.Recover, name: "of what has no record", applied: one, address: "vm.a",
			build: func(s *scene) {
				lost(s)
				s.object().Findings = []providers.Finding{{Kind: providers.FindBroken, Evidence: []string{"its monitor is dead"}}}
			},
			needs: seen("vm.a", veiled("demo.a")),
		},
		{
			action: providers.Recover, name: "unlock", applied: cache + with("a"), address: "disk.cache", build: locked,
			needs: seen("disk.cache"),
		},
		{
			action: providers.Recover, name: "unlock of what a VM that is off uses", applied: cache + with("a", "disk.cache"), address: "disk.cache",
			build: func(s *scene) {
				locked(s)
				offA(s)
			},
			needs: seen("disk.cache", veiled("demo.a"), garbled("vm.a", "the holder of the lock"), unlistedOther("vm.a")),
		},
		{
			action: providers.Release, applied: one + note, address: "box.note",
			build: func(s *scene) { s.stays() },
			needs: append(seen("vm.a", veiled("demo.a")), unknown{"what is inside", func(s *scene) {
				s.inside("vm.a").inventory = providers.Inventory{Partial: map[spec.Kind]*providers.Problem{box.Kind: providers.Refuse(noAnswer, nil)}}
			}}),
		},
	}
}

// unlistedOther is a holder that may be there and is not seen.
func unlistedOther(address string) unknown {
	u := unlisted(address)
	u.fact = "the holders: the listing is not complete"
	return u
}

// set builds the scene of a mutation.
func (m mutation) set(t *testing.T) *scene {
	t.Helper()
	s := after(t, m.applied)
	if m.spec != "" {
		s.config = load(t, m.spec)
	}
	if m.build != nil {
		m.build(s)
	}
	return s
}

// stepsOf returns the steps of one address, as text.
func stepsOf(p *planner.Plan, address string) string {
	var all []string
	for _, step := range p.Steps {
		if step.Address.String() == address {
			all = append(all, step.Op)
		}
	}
	return strings.Join(all, " ")
}

// Each action that changes something needs facts, and without any one of them is refused. The holder of a host port is the only fact that is not needed: the system refuses a
// port that is taken.
//
// row X08
func TestUnknownAuthorisesNothing(t *testing.T) {
	shown := map[providers.Action]bool{}
	for _, m := range mutations() {
		t.Run(strings.TrimSpace(string(m.action)+" "+m.name), func(t *testing.T) {
			p, err := m.set(t).plan()
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(p.Changes, func(c planner.Change) bool { return c.Address.String() == m.address })
			if i < 0 || p.Changes[i].Action != m.action || stepsOf(p, m.address) == "" || p.Forbidden() {
				t.Fatalf("with all facts known it is no %s of %s:\n%s", m.action, m.address, text(p))
			}
			shown[m.action] = true
			for _, u := range m.needs {
				t.Run(u.fact, func(t *testing.T) {
					s := m.set(t)
					u.hide(s)
					p, err := s.plan()
					if err != nil {
						t.Fatal(err)
					}
					if steps := stepsOf(p, m.address); steps != "" {
						t.Errorf("steps without that fact: %s\n%s", steps, text(p))
					}
					if !p.Forbidden() {
						t.Errorf("the plan is not forbidden:\n%s", text(p))
					}
					s = m.set(t)
					u.hide(s)
					s.config.Settings.SkipsUnread = true
					skipping(t, s, m.address)
				})
			}
		})
	}
	for _, action := range actions() {
		if mutates(action) && !shown[action] {
			t.Errorf("%s is not shown", action)
		}
	}
}

func actions() []providers.Action {
	return []providers.Action{
		providers.Create, providers.Update, providers.RestartIt, providers.ReplaceIt, providers.Destroy, providers.Start, providers.Stop,
		providers.Adopt, providers.Import, providers.Forget, providers.Release, providers.Recover, providers.NoOp,
	}
}

// mutates names every action, so that the linter asks for a new one.
func mutates(a providers.Action) bool {
	switch a {
	case providers.Create, providers.Update, providers.RestartIt, providers.ReplaceIt, providers.Destroy, providers.Start, providers.Stop,
		providers.Adopt, providers.Import, providers.Forget, providers.Release, providers.Recover:
		return true
	case providers.NoOp:
	}
	return false
}

// A provider that panics when it is asked for steps blocks that change, and says where.
func TestAPanicBlocksItsChange(t *testing.T) {
	s := after(t, "vm \"a\" {\n  memory = \"256MiB\"\n}\nvm \"b\" {}\n")
	s.config = load(t, "vm \"a\" {\n  memory = \"512MiB\"\n}\nvm \"b\" {}\n")
	s.system(here).panics = "steps"
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	blocked := ""
	for _, c := range p.Changes {
		if c.Blocked != nil {
			blocked += fmt.Sprintf("%s %s: %s\n", c.Address, c.Blocked.Cause, c.Blocked.Error())
		}
	}
	if want := "vm.a provider: plan the steps of vm.a: this is a mistake in vmctl, please report it: the provider panicked at planner/scenario_test.go:"; !strings.HasPrefix(blocked, want) || strings.Count(blocked, "\n") != 1 {
		t.Errorf("blocked:\n%s\nand was to be\n%s…", blocked, want)
	}
}

// A mistake that shows only with the values of another object blocks its change, and no other,
// before anything goes down.
func TestAMistakeInValuesOfOthersIsABlock(t *testing.T) {
	const head = "vm \"f\" {\n  boot {\n    kernel = \"kernel\"\n  }\n}\n"
	s := after(t, head+"vm \"a\" {}\n")
	f := s.objectOf("vm.f")
	attrs := f.Attrs.AsValueMap()
	attrs["address"] = cty.StringVal("127.0.0.1")
	f.Attrs = cty.ObjectVal(attrs)
	s.config = load(t, head+"vm \"a\" {\n  memory = vm.f.address\n}\nvm \"b\" {}\n")
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, c := range p.Changes {
		if c.Blocked != nil {
			said += fmt.Sprintf("%s %s: %s\n", c.Address, c.Blocked.Cause, c.Blocked.Error())
		}
	}
	if !strings.HasPrefix(said, "vm.a mistake: main.vmctl.hcl:") || strings.Count(said, "\n") != 1 {
		t.Errorf("blocked:\n%s\nplan:\n%s", said, text(p))
	}
	if steps := stepsOf(p, "vm.a"); steps != "" {
		t.Errorf("vm.a has steps: %s", steps)
	}
	if stepsOf(p, "vm.b") == "" {
		t.Errorf("vm.b has no steps:\n%s", text(p))
	}
}
