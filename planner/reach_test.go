package planner_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// reached returns what a plan reaches.
func (s *scene) reached() string {
	s.t.Helper()
	p, err := s.plan()
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for _, r := range p.Reach {
		line := r.Address.String() + " " + string(r.What) + " " + r.Text
		if (r.On != spec.Address{}) {
			line += " of " + r.On.String()
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

// What a plan reaches is what its blocks reach and its records do not.
func TestReach(t *testing.T) {
	const at8080 = "vm.a port guest 80, host 8080, host_ip 127.0.0.1, protocol tcp"
	for _, test := range []struct {
		name, applied, spec string
		change              func(*scene)
		want                string
	}{
		{name: "nothing new", applied: forwards("a", "127.0.0.1", ""), spec: forwards("a", "127.0.0.1", "  memory = \"512MiB\"\n")},
		{name: "a port more", applied: bare("a", ""), spec: forwards("a", "127.0.0.1", ""), want: at8080},
		{name: "a port less", applied: forwards("a", "127.0.0.1", ""), spec: bare("a", "")},
		{name: "another address", applied: forwards("a", "127.0.0.1", ""), spec: forwards("a", "0.0.0.0", ""), want: strings.Replace(at8080, "127.0.0.1", "0.0.0.0", 1)},
		{
			name: "one that is lost is made again with the same", applied: forwards("a", "127.0.0.1", ""), spec: forwards("a", "127.0.0.1", ""),
			change: func(s *scene) { s.lose("vm.a") },
		},
		{
			name: "one whose record is lost reaches all anew", applied: forwards("a", "127.0.0.1", ""), spec: forwards("a", "127.0.0.1", ""),
			change: func(s *scene) { s.forget("vm.a") }, want: at8080,
		},
		{
			name: "what is blocked reaches nothing", applied: "vm \"a\" {\n  boot {\n    kernel  = \"kernel\"\n    cmdline = \"x\"\n  }\n}\n",
			spec: forwards("a", "127.0.0.1", "  boot {\n    kernel  = \"kernel\"\n    cmdline = \"y\"\n  }\n"),
		},
		{
			name: "what is out of scope reaches nothing", applied: bare("a", "") + bare("b", ""), spec: forwards("a", "127.0.0.1", "") + forwards("b", "127.0.0.1", ""),
			change: func(s *scene) { s.options.Scope.Excludes = []spec.Address{addr(s.t, "vm.b")} }, want: at8080,
		},
		{name: "what goes reaches nothing", applied: forwards("a", "127.0.0.1", ""), spec: "# empty\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, test.applied)
			s.config = load(t, test.spec)
			if test.change != nil {
				test.change(s)
			}
			if got := s.reached(); got != test.want {
				t.Errorf("it reaches\n%s\nnot\n%s", got, test.want)
			}
		})
	}
}

// A digest is that of what is reached, wherever the plan was made.
func TestReachDigest(t *testing.T) {
	a := planner.Reach{Address: spec.Address{Kind: spec.VM, Name: "a"}, What: spec.ReachPort, Text: "guest 80"}
	b := a
	b.On = spec.Address{Kind: spec.VM, Name: "b"}
	digests := map[string]bool{}
	for _, all := range [][]planner.Reach{nil, {a}, {b}, {a, b}, {b, a}} {
		digests[planner.ReachDigest(all)] = true
	}
	if len(digests) != 5 {
		t.Errorf("5 lists have %d digests", len(digests))
	}
	if got := planner.ReachDigest([]planner.Reach{a}); got != "86b0e7de1ef2" {
		t.Errorf("the digest is %s: it must be the one of earlier builds", got)
	}
}

// What leaves a VM for this host reaches this host anew, though its block says the same.
func TestReachOfWhatMoves(t *testing.T) {
	const (
		vm      = "vm \"a\" {\n}\n"
		hook    = "  hook \"h\" {\n    command = [\"true\"]\n  }\n"
		once    = "job \"j\" {\n  workspace = workspace.w\n  command = [\"true\"]\n  run = \"once\"\n  triggers = { x = \"%s\" }\n}\n"
		command = "workspace.w command h: when created, command [\"true\"], required false"
		port    = "container.c port container 80, host 8080, host_ip 127.0.0.1, protocol tcp"
	)
	work := func(in, more string) string {
		return vm + "workspace \"w\" {\n" + in + "  branch = \"w\"\n  path = \"/w\"\n" + more + "}\n"
	}
	job := func(trigger string) string { return fmt.Sprintf(once, trigger) }
	served := func(in string) string {
		return vm + "engine \"e\" {\n" + in + "}\nimage \"i\" {\n  engine = engine.e\n  ref = \"i:1\"\n}\n" +
			"container \"c\" {\n  engine = engine.e\n  image = image.i\n  port {\n    container = 80\n    host = 8080\n  }\n}\n"
	}
	const inVM = "  vm = vm.a\n"
	for _, test := range []struct{ name, applied, spec, want string }{
		{name: "a hook stays in the VM", applied: work(inVM, hook), spec: work(inVM, hook)},
		{name: "a hook leaves the VM", applied: work(inVM, hook), spec: work("", hook), want: command},
		{name: "a hook goes into the VM", applied: work("", hook), spec: work(inVM, hook)},
		{
			name: "a job leaves the VM with its workspace", applied: work(inVM, "") + job("1"), spec: work("", "") + job("2"),
			want: "job.j command agent command\njob.j command command [\"true\"]",
		},
		{name: "a job runs again on this host", applied: work("", "") + job("1"), spec: work("", "") + job("2")},
		{
			name: "a container leaves the VM with its engine", applied: served(inVM), spec: served(""),
			want: port + "\nengine.e server host unix:///var/run/docker.sock",
		},
		{name: "a container goes into the VM with its engine", applied: served(""), spec: served(inVM), want: port + " of vm.a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, vm)
			s.inhabit(load(t, test.applied))
			s.config = load(t, test.spec)
			if got := s.reached(); got != test.want {
				t.Errorf("it reaches\n%s\nnot\n%s", got, test.want)
			}
		})
	}
}

// inhabit adds the records and the objects of what is not a VM, as if it had been applied.
func (s *scene) inhabit(c *spec.Config) {
	worlds := map[string]*system{}
	world := func(kind string, around spec.Address) *system {
		key := around.String()
		if key == "" {
			key = kind
		}
		if worlds[key] == nil {
			worlds[key] = &system{}
		}
		return worlds[key]
	}
	types := testTypes()
	types.Inside = map[spec.Kind]providers.Type{}
	for _, all := range []providers.Types{jobTypes(), containerTypes()} {
		maps.Copy(types.Inside, all.Inside)
	}
	for _, r := range c.Resources {
		if r.Address.Kind == spec.VM {
			continue
		}
		id, name := planner.ObjectID(project, r.Address, 0), planner.ObjectName(project, r.Address)
		settings := cty.EmptyObjectVal
		if !r.Provider.IsOnThisHost() {
			settings = testType().Resolve(s.provider(r.Provider))
		}
		s.state.Records[r.Address] = state.Record{
			Kind: r.Address.Kind, Provider: r.Provider, Settings: settings, ID: string(id), Name: name, Generation: 1,
			Values: r.Want, Policy: r.Policy, Uses: r.Uses, Inside: r.Inside,
		}
		in := world(types.Inside[r.Address.Kind].Name, r.Inside)
		in.inventory.Objects = append(in.inventory.Objects, providers.Object{
			Kind: r.Address.Kind, ID: id, Name: name, Attrs: cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(string(id))}), Fingerprint: "as applied",
			Owner: &providers.Mark{ID: project.ID, Project: project.Name, Address: r.Address, Of: id, Generation: 1},
		})
	}
	s.options.Types = types
	s.inhabited = func(o planner.Opening) providers.Provider {
		switch {
		case o.Via != nil:
			return world("", o.Via.Address)
		case o.Ref.IsOnThisHost():
			return world(o.Type.Name, spec.Address{})
		default:
			return nil
		}
	}
}

func TestIsReachDigest(t *testing.T) {
	for text, want := range map[string]bool{
		planner.ReachDigest(nil): true, "000000000000": true,
		"": false, "00000000000": false, "0000000000000": false, "00000000000G": false, "ABCDEF000000": false,
	} {
		if got := planner.IsReachDigest(text); got != want {
			t.Errorf("IsReachDigest(%q) = %v", text, got)
		}
	}
}
