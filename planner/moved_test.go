package planner_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// move gives the record of vm.a to another address, as `state mv` does.
func (s *scene) move(to string) {
	s.t.Helper()
	from := addr(s.t, "vm.a")
	r := s.state.Records[from]
	r.Was = append(r.Was, from)
	delete(s.state.Records, from)
	s.state.Records[addr(s.t, to)] = r
}

func TestMovedRecord(t *testing.T) {
	const b = "vm \"b\" {\n  memory = \"256MiB\"\n}\n"
	const updated = `update vm.b: mark: the record was moved, and the owner mark still names the address before
  mark vm.a -> vm.b, live
`
	for _, test := range []struct {
		name, spec string
		change     func(*scene)
		want       string
	}{
		{name: "its mark is rewritten, and nothing else", spec: b, want: updated + "0 redefine vm.b\n"},
		{
			name: "then there is nothing left to do", spec: b, want: "",
			change: func(s *scene) { s.object().Owner.Address = addr(s.t, "vm.b") },
		},
		{
			name: "with another edit, one change does both", spec: "vm \"b\" {\n  memory = \"512MiB\"\n}\n",
			want: `restart vm.b: memory: the guest sees it at its next start
  mark vm.a -> vm.b, live
  memory 256MiB -> 512MiB, restart
0 stop vm.b
1 redefine vm.b after 0
2 start vm.b after 1
3 wait_ssh vm.b after 2
`,
		},
		{
			name: "removed from the spec, it is destroyed as any other", spec: "# empty\n",
			want: "destroy vm.b: it is not in the spec\n0 stop vm.b\n1 delete vm.b after 0\n",
		},
		{
			name: "the old address is wanted too: its name is taken, and it gets another", spec: one + b,
			want: "create vm.a: it does not exist\n" + updated + "0 define vm.a\n1 redefine vm.b\n2 start vm.a after 0\n3 wait_ssh vm.a after 2\n",
		},
		{
			name: "the old address is wanted with another name: another object is made", spec: "vm \"a\" {\n  name = \"new\"\n}\n" + b,
			want: "create vm.a: it does not exist\n" + updated + "0 define vm.a\n1 redefine vm.b\n2 start vm.a after 0\n3 wait_ssh vm.a after 2\n",
		},
		{
			name: "a restored state from before the move destroys nothing", spec: b,
			change: func(s *scene) {
				o := s.object()
				o.Owner.Address, o.Owner.Generation = addr(s.t, "vm.b"), 2
				r := s.state.Records[addr(s.t, "vm.b")]
				s.forget("vm.b")
				r.Was = nil
				s.state.Records[addr(s.t, "vm.a")] = r
			},
			want: `forget vm.a: its object is not vmctl's any more
adopt vm.b: it is ours, and its record was lost
0 forget vm.a
1 record vm.b
`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, one)
			id := string(s.object().ID)
			s.config = load(t, test.spec)
			s.move("vm.b")
			if test.change != nil {
				test.change(s)
			}
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, strings.ReplaceAll(text(p), id, "ID")); d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
			taken := map[providers.ID]bool{}
			for _, c := range p.Changes {
				if taken[c.ID] && c.ID != "" && c.Blocked == nil {
					t.Errorf("two objects get the ID %s", c.ID)
				}
				taken[c.ID] = true
			}
		})
	}
}

// A moved block leads an object whose record is lost, as on a fresh machine, to its new
// address, unless that has one already.
func TestMovedWithoutARecord(t *testing.T) {
	const moved = "vm \"b\" {\n  memory = \"256MiB\"\n}\nmoved {\n  from = vm.a\n  to   = vm.b\n}\n"
	const updated = `update vm.b: mark: a moved block leads here from the address that the owner mark names
  mark vm.a -> vm.b, live
`
	for _, test := range []struct {
		name, spec string
		change     func(*scene)
		want       string
	}{
		{name: "its mark is rewritten, and nothing else", spec: moved, want: updated + "0 redefine vm.b\n1 wait_ssh vm.b after 0\n"},
		{
			name: "another one wants its name", spec: moved + "vm \"c\" {\n  name = \"demo.a\"\n}\n",
			want: updated + `create vm.c: it does not exist
  blocked: name demo.a is held by vm.b, and this plan does not change that
  > choose another in the block of vm.c, or free it first
0 redefine vm.b
1 wait_ssh vm.b after 0
`,
		},
		{
			name: "the new address has an object: this one is an orphan", spec: moved,
			change: func(s *scene) {
				system := s.system("qemu:///session")
				other := *s.object()
				mark := *other.Owner
				other.ID, other.Name, other.Holds = "other", "other", nil
				mark.Of, mark.Address = other.ID, addr(s.t, "vm.b")
				other.Owner = &mark
				system.inventory.Objects = append(system.inventory.Objects, other)
			},
			want: `adopt vm.b: it is ours, and its record was lost
found orphan vm.a: libvirt vm "demo.a" (ID) bears our mark; it is in neither the spec nor the state
0 record vm.b
`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, one)
			id := string(s.object().ID)
			s.forget("vm.a")
			s.config = load(t, test.spec)
			if test.change != nil {
				test.change(s)
			}
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, strings.ReplaceAll(text(p), id, "ID")); d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
		})
	}
}

// An object that bears no mark and was let go of is not made a second time, under
// another name.
//
// row A17
func TestForgottenObjectIsInTheWay(t *testing.T) {
	s := after(t, one)
	o := s.object()
	o.Owner, o.Name = nil, "renamed"
	s.forget("vm.a")
	s.state.Forgotten = map[string]spec.Address{string(o.ID): addr(t, "vm.a")}
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	want := `create vm.a: it does not exist
  blocked: libvirt vm "renamed" (ID) exists, and the state let go of it: import or rename
  > rename: set another name in the block of vm.a, or rename the other object with its own tool
  > import: vmctl import vm.a ID
`
	if d := cmp.Diff(want, strings.ReplaceAll(text(p), string(o.ID), "ID")); d != "" {
		t.Errorf("plan (-want +got):\n%s", d)
	}
	var asked []providers.ID
	for _, k := range s.systems["qemu:///session"].known {
		asked = append(asked, k.ID)
	}
	if d := cmp.Diff([]providers.ID{"", o.ID}, asked); d != "" {
		t.Errorf("what the system was asked for (-want +got):\n%s", d)
	}
}

// An object that a removed block let go of may exist for ever: another object of its address,
// under another name, gets another ID.
func TestAnIDIsGivenOnce(t *testing.T) {
	s := after(t, one)
	s.forget("vm.a")
	s.system("qemu:///session").inventory.Objects = nil // it is not asked for, and so not listed
	s.config = load(t, "vm \"a\" {\n  name = \"again\"\n}\n")
	s.state.Forgotten = map[string]spec.Address{string(planner.ObjectID(project, addr(t, "vm.a"), 0)): {}}
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Changes[0].ID, planner.ObjectID(project, addr(t, "vm.a"), 1); got != want || p.Changes[0].Replaced != 1 {
		t.Errorf("%s is to be made, want %s", got, want)
	}
	if d := cmp.Diff("create vm.a: it does not exist\n0 define vm.a\n1 start vm.a after 0\n2 wait_ssh vm.a after 1\n", text(p)); d != "" {
		t.Errorf("plan (-want +got):\n%s", d)
	}
}

// vmctl makes nothing without a mark: an unmarked object under the ID of one that was
// only begun is somebody else's.
func TestAReservedRecordProvesNothing(t *testing.T) {
	begun := func(t *testing.T) *scene {
		s := after(t, one)
		s.object().Owner, s.object().Name, s.object().Holds = nil, "theirs", nil
		r := s.state.Records[addr(t, "vm.a")]
		r.Reserved = true
		s.state.Records[addr(t, "vm.a")] = r
		return s
	}
	s := begun(t)
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	if c := p.Changes[0]; c.Action != providers.Create || c.Blocked != nil || c.ID != planner.ObjectID(project, addr(t, "vm.a"), 1) {
		t.Errorf("wanted, it is to %s as %s: %+v", c.Action, c.ID, c.Blocked)
	}
	s = begun(t)
	s.config = load(t, "# empty\n")
	if p, err = s.plan(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("forget vm.a: its object is not vmctl's any more\n0 forget vm.a\n", text(p)); d != "" {
		t.Errorf("not wanted (-want +got):\n%s", d)
	}
}

// A declared provider is observed even if no block uses it: objects of ours there are reported.
//
// row A17
func TestOrphanOfAnUnusedProvider(t *testing.T) {
	s := after(t, "provider \"libvirt\" \"here\" {\n  uri = \"qemu:///session\"\n}\n"+"vm \"a\" {\n  provider = provider.libvirt.here\n}\n")
	s.config = load(t, "provider \"libvirt\" \"here\" {\n  uri = \"qemu:///session\"\n}\n")
	id := s.object().ID
	s.forget("vm.a")
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	want := "found orphan vm.a: libvirt vm \"demo.a\" (ID) bears our mark; it is in neither the spec nor the state\n"
	if d := cmp.Diff(want, strings.ReplaceAll(text(p), string(id), "ID")); d != "" {
		t.Errorf("plan (-want +got):\n%s", d)
	}
}

func TestRebuild(t *testing.T) {
	const three = "vm \"a\" {\n  cpus = 1\n}\nvm \"b\" {\n  depends_on = [vm.a]\n}\nvm \"c\" {}\n"
	s := after(t, three)
	s.config = load(t, "vm \"a\" {\n  cpus = 4\n}\nvm \"b\" {\n  depends_on = [vm.a]\n}\n")
	s.state.Records = map[spec.Address]state.Record{}
	inv := &s.systems["qemu:///session"].inventory
	twice := inv.Objects[1]
	twice.ID, twice.Name = "twice", "demo.b-2"
	mark := *twice.Owner
	mark.Of = "twice"
	twice.Owner = &mark
	inv.Objects = append(inv.Objects, twice)
	inv.Unknown = []providers.Unknown{{Kind: spec.VM, ID: "x", Name: "demo.x", Reason: "it could not be read"}}
	p, err := s.rebuild()
	if err != nil {
		t.Fatal(err)
	}
	got := text(p)
	for i, o := range inv.Objects[:3] {
		got = strings.ReplaceAll(got, string(o.ID), []string{"A", "B", "C"}[i])
	}
	want := `adopt vm.a: it bears our mark
adopt vm.c: it bears our mark
found orphan vm.b: libvirt vm "demo.b" (B): 2 objects bear the mark of vm.b
found orphan vm.b: libvirt vm "demo.b-2" (twice): 2 objects bear the mark of vm.b
found unknown : provider.libvirt.default: it could not be read
0 record vm.a
1 record vm.c
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("plan (-want +got):\n%s", d)
	}
	for _, c := range p.Changes {
		inFiles := c.Address == addr(t, "vm.a")
		prevented := c.Policy.GetAttr("lifecycle").GetAttr("prevent_destroy").True()
		if prevented == inFiles || len(c.Warnings) == 0 != inFiles {
			t.Errorf("%s: prevent_destroy %t, warnings %q", c.Address, prevented, c.Warnings)
		}
		if n, _ := c.Prior.GetAttr("cpus").AsBigFloat().Int64(); inFiles && n != 1 {
			t.Errorf("%s is recorded with %d cpus, and has 1", c.Address, n)
		}
		if c.Change.Want != (providers.Change{}).Want {
			t.Errorf("%s: the record would say what is wanted", c.Address)
		}
	}
}

func (s *scene) rebuild() (*planner.Plan, error) {
	w, err := planner.Observe(s.t.Context(), s.open, s.config, s.state, s.options)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := w.Close(); err != nil {
			s.t.Error(err)
		}
	}()
	return planner.Rebuild(s.config, s.state, w, s.options)
}
