package planner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// soil puts work that exists nowhere else into the objects inside of vm.a.
func (s *scene) soil(items ...string) {
	inventory := &s.inside("vm.a").inventory
	for i := range inventory.Objects {
		inventory.Objects[i].Dirty = []providers.Dirt{{Sort: "untracked files", Items: items}}
	}
}

// Work that exists nowhere else keeps the object that holds it, and all around that, unless the user lets it go.
func TestDirty(t *testing.T) {
	const blocked = "  blocked: it has work that exists nowhere else: untracked files: a, b\n  > or lose it: --allow-dirty=box.note\n"
	const kept = "  blocked: box.note is inside of it, and is to be kept\n  > see what the plan says of box.note\n"
	allow := func(s *scene) { s.options.Allow.Dirty = map[spec.Address]bool{addr(s.t, "box.note"): true} }
	tests := []struct {
		name   string
		spec   string
		change func(*scene)
		want   string
	}{
		{name: "nothing is done about it", spec: one + note, change: func(*scene) {}, want: ""},
		{
			name: "it would be destroyed", spec: one, change: func(*scene) {},
			want: "destroy box.note: it is not in the spec\n" + blocked,
		},
		{
			name: "it would be destroyed, and that is not known", spec: one,
			change: func(s *scene) {
				o := &s.inside("vm.a").inventory.Objects[0]
				o.Dirty, o.Unreadable = nil, map[string]string{"dirty": "no answer"}
			},
			want: "destroy box.note: it is not in the spec\n" +
				"  blocked: it has work that exists nowhere else: it could not be read whether it has work that exists nowhere else: no answer\n" +
				"  > or lose it: --allow-dirty=box.note\n",
		},
		{
			name: "the VM around it would be destroyed", spec: "", change: func(s *scene) { s.options.Destroy = true },
			want: "destroy box.note: it was asked for\n" + blocked + "destroy vm.a: it was asked for\n" + kept,
		},
		{
			name: "the VM around it is replaced", spec: "vm \"a\" {\n  memory = \"256MiB\"\n  accel = \"kvm\"\n  lifecycle {\n    on_change = { accel = \"replace\" }\n  }\n}\n" + note,
			change: func(*scene) {},
			want: "replace box.note: vm.a is replaced: made again in the new one\n" + blocked +
				"replace vm.a: accel: cannot change after it was made\n  accel auto -> kvm, replace\n" + kept,
		},
		{
			name: "it is let go of, and the VM around it stays", spec: one + "removed {\n  from = box.note\n  destroy = false\n}\n", change: func(*scene) {},
			want: "forget box.note: its removed block lets go of it: the object stays as it is, without vmctl's mark\n0 unmark box.note\n1 forget box.note after 0\n",
		},
		{
			name: "it is let go of, and the VM around it goes", spec: "removed {\n  from = box.note\n  destroy = false\n}\n", change: func(*scene) {},
			want: "forget box.note: its removed block lets go of it: the object stays as it is, without vmctl's mark\n" + blocked + "destroy vm.a: it is not in the spec\n" + kept,
		},
		{
			name: "it is let go of, and excluded, and the VM around it goes", spec: "removed {\n  from = box.note\n  destroy = false\n}\n",
			change: func(s *scene) {
				s.options.Scope = planner.Scope{Excludes: []spec.Address{addr(s.t, "box.note")}}
			},
			want: "destroy vm.a: it is not in the spec\n  blocked: box.note is inside of it, and is to be kept\n  > take box.note in: leave out --target and --exclude, or name it, too: --target=box.note\n",
		},
		{
			name: "it may be lost", spec: one, change: allow,
			want: "destroy box.note: it is not in the spec\nfound dirty box.note: untracked files: a; untracked files: b\n" +
				"0 close box.note\n1 remove box.note after 0\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, one+note)
			s.soil("a", "b")
			s.config = load(t, test.spec)
			test.change(s)
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, text(p)); diff != "" {
				t.Errorf("the plan (-want +got):\n%s", diff)
			}
		})
	}
}

// An object whose root is in memory is not taken down while something inside of it has such work; any other one is.
func TestDirtyInMemory(t *testing.T) {
	for _, test := range []struct {
		volatile bool
		want     string
	}{
		{false, "release box.note: vm.a goes down\n"},
		{true, "  blocked: its root is in memory, and box.note inside of it has work that exists nowhere else: untracked files: a\n  > or lose it: --allow-dirty=box.note\n"},
	} {
		s := after(t, one+note)
		s.soil("a")
		s.objectOf("vm.a").Volatile = test.volatile
		s.config = load(t, "vm \"a\" {\n  memory = \"512MiB\"\n}\n"+note)
		p, err := s.plan()
		if err != nil {
			t.Fatal(err)
		}
		if got := text(p); !strings.Contains(got, test.want) {
			t.Errorf("in memory %t: the plan has no %q:\n%s", test.volatile, test.want, got)
		}
	}
}

// The work in an object is saved before the VM around it is replaced, if its provider does that before a removal.
func TestDirtySavedBeforeTheVMIsReplaced(t *testing.T) {
	s := after(t, one+note)
	s.soil("a")
	s.inside("vm.a").saves = true
	s.config = load(t, "vm \"a\" {\n  memory = \"256MiB\"\n  accel = \"kvm\"\n  lifecycle {\n    on_change = { accel = \"replace\" }\n  }\n}\n"+note)
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	saved := slices.IndexFunc(p.Steps, func(s planner.Step) bool { return s.Saves })
	if saved < 0 {
		t.Fatalf("nothing is saved:\n%s", text(p))
	}
	vm := addr(t, "vm.a")
	for i, step := range p.Steps {
		if step.Address == vm && (step.Phase == providers.PhaseDown || step.Phase == providers.PhaseRemove) && (i < saved || !slices.Contains(step.After, saved)) {
			t.Errorf("%s of the VM does not wait for the save:\n%s", step.Op, text(p))
		}
		if step.Address == addr(t, "box.note") && step.Phase == providers.PhaseRemove {
			t.Errorf("what goes with the VM is removed by a step of its own:\n%s", text(p))
		}
	}
	if got := text(p); strings.Contains(got, "blocked") || !strings.Contains(got, "found dirty box.note: untracked files: a") {
		t.Errorf("the plan is:\n%s", got)
	}
}

// What goes with the VM around it, or is lost when that goes down, is looked at before: somebody may work in it until then.
func TestWorkIsLookedForBeforeTheVMGoes(t *testing.T) {
	for _, test := range []struct{ name, spec string }{
		{"it is replaced", "vm \"a\" {\n  memory = \"256MiB\"\n  accel = \"kvm\"\n  lifecycle {\n    on_change = { accel = \"replace\" }\n  }\n}\n" + note},
		{"it is restarted, and its root is in memory", "vm \"a\" {\n  memory = \"512MiB\"\n}\n" + note},
	} {
		s := after(t, one+note)
		s.inside("vm.a").checks = true
		s.objectOf("vm.a").Volatile = true
		s.config = load(t, test.spec)
		p, err := s.plan()
		if err != nil {
			t.Fatal(err)
		}
		checked := slices.IndexFunc(p.Steps, func(s planner.Step) bool { return s.Checks && s.Address == addr(t, "box.note") })
		down := slices.IndexFunc(p.Steps, func(s planner.Step) bool { return s.Phase == providers.PhaseDown && s.Address == addr(t, "vm.a") })
		if checked < 0 || down < 0 || !slices.Contains(p.Steps[down].After, checked) {
			t.Errorf("%s: nobody looks before it goes down:\n%s", test.name, text(p))
		}
	}
}

// A VM that is off and is to go may have work in it: it stays, and the plan says which start would tell. Where the work may be lost,
// nothing has to be started.
//
// row A04, of work in a VM that is off
func TestSleepers(t *testing.T) {
	const vm, work = "vm \"a\" {\n}\n", "workspace \"w\" {\n  vm = vm.a\n  branch = \"w\"\n  path = \"/w\"\n}\n"
	unseen := func(command string) string {
		return "  blocked: vm.a is off: nobody can see whether workspace.w has work that exists nowhere else\n  > start the VM first: vmctl vm start vm.a\n" +
			"  > or have it started and looked into: vmctl " + command + " --wake\n  > or lose it: --allow-dirty=workspace.w\n"
	}
	for _, test := range []struct {
		name, spec string
		change     func(*scene)
		want       string
		sleepers   []spec.Address
	}{
		{"destroyed", vm + work, func(s *scene) { s.options.Destroy = true }, "destroy vm.a: it was asked for\n", []spec.Address{{Kind: spec.VM, Name: "a"}}},
		{"without blocks", "", func(*scene) {}, "destroy vm.a: it is not in the spec\n", []spec.Address{{Kind: spec.VM, Name: "a"}}},
		{"its work may be lost", vm + work, func(s *scene) {
			s.options.Destroy, s.options.Allow.Dirty = true, map[spec.Address]bool{{Kind: spec.Workspace, Name: "w"}: true}
		}, "", nil},
		{"it stays", vm + work, func(*scene) {}, "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, vm+work)
			s.config, s.options.Types = load(t, test.spec), jobTypes()
			s.off()
			test.change(s)
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.sleepers, p.Sleepers()); diff != "" {
				t.Errorf("sleepers (-want +got):\n%s\n%s", diff, text(p))
			}
			command := map[bool]string{true: "destroy", false: "apply"}[s.options.Destroy]
			if got := text(p); test.sleepers != nil && (!strings.Contains(got, unseen(command)) || !strings.Contains(got, test.want)) {
				t.Errorf("the plan does not say so:\n%s", got)
			}
		})
	}
}
