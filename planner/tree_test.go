package planner_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// A tree of three levels: a VM, a box in it, and a box in that box.
const (
	treeVM    = "vm \"a\" {\n}\n"
	treeBox   = "box \"b\" {\n  in    = vm.a\n  label = \"b\"\n}\n"
	treeInner = "box \"c\" {\n  in    = box.b\n  label = \"c\"\n}\n"
	treeOther = "vm \"z\" {\n}\n"
)

// fates lists the fates of an object that has others inside of it.
var fates = []struct {
	name          string
	before, after func(block string) string // of the parent's block; nil: as it is
	change        func(s *scene, a string)  // what happened behind vmctl's back
}{
	{name: "stays"},
	{name: "is made", before: func(string) string { return "" }},
	{name: "restarts", after: func(b string) string { return holding(b, restarts(b)) }},
	{name: "is replaced", after: func(b string) string {
		if strings.HasPrefix(b, "vm") {
			return holding(b, "accel = \"tcg\"")
		}
		return strings.Replace(b, `label = "b"`, `label = "b2"`, 1)
	}},
	{name: "stops", after: func(b string) string { return holding(b, "running = false") }},
	{name: "is off", before: func(b string) string { return holding(b, "running = false") }, after: func(b string) string { return holding(b, "running = false") }},
	{name: "starts", before: func(b string) string { return holding(b, "running = false") }},
	{name: "is gone", change: func(s *scene, a string) { s.vanish(a) }},
	{name: "is unknown", change: func(s *scene, a string) { s.veil(a) }},
	{name: "is unwanted", after: func(string) string { return "" }},
	{name: "is blocked", after: func(b string) string {
		attr, _, _ := strings.Cut(restarts(b), " ")
		return holding(holding(b, "lifecycle {\n    on_change = { "+attr+" = \"live\" }\n  }"), restarts(b))
	}},
	{name: "has lost its record", change: func(s *scene, a string) { delete(s.state.Records, addr(s.t, a)) }},
	{name: "is an orphan", after: func(string) string { return "" }, change: func(s *scene, a string) { delete(s.state.Records, addr(s.t, a)) }},
	{name: "is busy", after: func(b string) string { return holding(b, restarts(b)) }, change: func(s *scene, a string) { s.occupy(a, 1) }},
	{name: "is kept from destruction", before: func(b string) string { return holding(b, "lifecycle {\n    prevent_destroy = true\n  }") }, after: func(string) string { return "" }},
}

// cases lists the states of the innermost object.
var cases = []struct {
	name          string
	before, after func(block string) string
	change        func(s *scene)
}{
	{name: "is as wanted"},
	{name: "is new", before: func(string) string { return "" }},
	{name: "changes", after: func(b string) string { return holding(b, "content = \"x\"") }},
	{name: "is unwanted", after: func(string) string { return "" }},
	{name: "is gone", change: func(s *scene) { s.vanish("box.c") }},
	{name: "is unknown", change: func(s *scene) { s.veil("box.c") }},
	{name: "is protected", before: func(b string) string { return holding(b, "lifecycle {\n    prevent_destroy = true\n  }") }, after: func(b string) string { return holding(b, "lifecycle {\n    prevent_destroy = true\n  }") }},
	{name: "moves", after: func(b string) string { return strings.Replace(b, "in    = box.b", "in    = vm.z", 1) }},
}

// vanish lets the object of an address go, with all inside of it.
func (s *scene) vanish(a string) {
	for _, systems := range []map[string]*system{s.systems, s.insides} {
		for _, sys := range systems {
			sys.inventory.Objects = slices.DeleteFunc(sys.inventory.Objects, func(o providers.Object) bool {
				return o.Owner != nil && o.Owner.Address.String() == a
			})
		}
	}
	if inside := s.insides[a]; inside != nil {
		for _, o := range slices.Clone(inside.inventory.Objects) {
			s.vanish(o.Owner.Address.String())
		}
	}
}

// veil lets the object of an address be unknown.
func (s *scene) veil(a string) {
	for _, systems := range []map[string]*system{s.systems, s.insides} {
		for _, sys := range systems {
			for _, o := range slices.Clone(sys.inventory.Objects) {
				if o.Owner != nil && o.Owner.Address.String() == a {
					sys.inventory.Unknown = append(sys.inventory.Unknown, providers.Unknown{Kind: o.Kind, ID: o.ID, Name: o.Name, Reason: "no answer"})
				}
			}
		}
	}
	if r, ok := s.state.Records[addr(s.t, a)]; ok {
		for _, systems := range []map[string]*system{s.systems, s.insides} {
			for _, sys := range systems {
				sys.inventory.Objects = slices.DeleteFunc(sys.inventory.Objects, func(o providers.Object) bool { return string(o.ID) == r.ID })
			}
		}
	}
}

// Each fate of a VM, and of a box in a VM, with each state of what is inside of a box: one cell of
// the table in testdata/tree.txtar, and laws that hold in all of them.
//
// row X20
func TestTree(t *testing.T) {
	const file = "testdata/tree.txtar"
	golden, err := txtar.ParseFile(file)
	if err != nil && os.Getenv("UPDATE") == "" {
		t.Fatal(err)
	}
	wanted := map[string]string{}
	if golden != nil {
		for _, f := range golden.Files {
			wanted[f.Name] = string(f.Data)
		}
	}
	now := &txtar.Archive{Comment: []byte("What becomes of box.c, inside of box.b, inside of vm.a: by the fate of one of these, and its own state.\n\n")}
	for _, level := range []string{"vm.a", "box.b"} {
		for _, fate := range fates {
			for _, own := range cases {
				name := level + " " + fate.name + ", box.c " + own.name
				t.Run(name, func(t *testing.T) {
					text := plantree(t, level, fate.before, fate.after, own.before, own.after, func(s *scene) {
						if fate.change != nil {
							fate.change(s, level)
						}
						if own.change != nil {
							own.change(s)
						}
					})
					now.Files = append(now.Files, txtar.File{Name: name, Data: []byte(text)})
					if diff := cmp.Diff(wanted[name], text); diff != "" && os.Getenv("UPDATE") == "" {
						t.Errorf("plan (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, txtar.Format(now), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What goes with a parent that is replaced frees its claims with that one: two boxes can exchange
// their labels.
func TestExchangeInsideOfWhatIsReplaced(t *testing.T) {
	second := strings.ReplaceAll(treeInner, `"c"`, `"d"`)
	s := after(t, treeVM+treeBox+treeInner+second)
	s.config = load(t, holding(treeVM, `accel = "tcg"`)+treeBox+
		strings.Replace(treeInner, `label = "c"`, `label = "d"`, 1)+strings.Replace(second, `label = "d"`, `label = "c"`, 1))
	s.options.Allow.Replace = map[spec.Address]bool{addr(t, "vm.a"): true}
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	checkTree(t, p)
	if p.Forbidden() || p.Summary.Actions[providers.ReplaceIt] != 4 {
		t.Errorf("the plan is\n%s", text(p))
	}
}

// plantree plans on a tree that was changed, and checks the laws of trees.
func plantree(t *testing.T, level string, parentBefore, parentAfter, innerBefore, innerAfter func(string) string, change func(*scene)) string {
	t.Helper()
	write := func(parent, inner func(string) string) string {
		vm, box, c := treeVM, treeBox, treeInner
		if inner != nil {
			c = inner(c)
		}
		if parent != nil && level == "vm.a" {
			vm = parent(vm)
		}
		if parent != nil && level == "box.b" {
			box = parent(box)
		}
		if vm == "" { // what is inside of it has no block either
			box = ""
		}
		if box == "" && !strings.Contains(c, "in    = vm.z") {
			c = ""
		}
		return vm + box + c + treeOther
	}
	s := after(t, write(parentBefore, innerBefore))
	s.config = load(t, write(parentAfter, innerAfter))
	change(s)
	all := map[spec.Address]bool{}
	for _, a := range []string{"vm.a", "box.b", "box.c"} {
		all[addr(t, a)] = true
	}
	s.options.Allow.Replace = all
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	checkTree(t, p)
	return text(p)
}

// checkTree checks that in a plan what is inside goes down before what is around it, and comes up
// after that.
func checkTree(t *testing.T, p *planner.Plan) {
	t.Helper()
	for _, inner := range p.Steps {
		c := &p.Changes[inner.Change]
		for _, outer := range p.Steps {
			a := p.Changes[outer.Change].Address
			around, aim := slices.Contains(c.Around, a), slices.Contains(c.Aim().Around, a)
			lowers := outer.Phase.Sinks() && outer.Phase != providers.PhaseFree
			switch {
			case around && inner.Phase.Sinks() && lowers && outer.Address != inner.Address && !waitsFor(p, outer.ID, inner.ID):
				t.Errorf("%s %s does not wait for %s %s", outer.Op, outer.Address, inner.Op, inner.Address)
			case aim && inner.Phase.Rises() && outer.Phase.Rises() && c.Want != nil && !waitsFor(p, inner.ID, outer.ID):
				t.Errorf("%s %s does not wait for %s %s", inner.Op, inner.Address, outer.Op, outer.Address)
			case aim && inner.Phase == providers.PhaseMake && lowers && outer.Phase.Sinks() && !rises(p, a):
				t.Errorf("%s %s, and %s %s around it", inner.Op, inner.Address, outer.Op, outer.Address)
			}
		}
	}
}

// rises reports whether a plan brings an object up.
func rises(p *planner.Plan, a spec.Address) bool {
	return slices.ContainsFunc(p.Steps, func(s planner.Step) bool { return s.Address == a && s.Phase.Rises() })
}

// A box is made in a box of any depth only if nothing around that goes down for good.
func TestMovesIntoATree(t *testing.T) {
	const moving = "box \"d\" {\n  in    = vm.z\n  label = \"d\"\n}\n"
	moved := strings.Replace(moving, "vm.z", "box.c", 1)
	for _, before := range []string{"", moving} {
		for _, fate := range fates {
			for _, level := range []string{"vm.a", "box.b"} {
				name := level + " " + fate.name + ", box.d is made"
				if before != "" && fate.name == "is made" {
					continue // box.c is not there to move into
				}
				if before != "" {
					name = level + " " + fate.name + ", box.d moves"
				}
				t.Run(name, func(t *testing.T) {
					plantree(t, level, fate.before, fate.after, func(c string) string { return c + before }, func(c string) string { return c + moved }, func(s *scene) {
						if fate.change != nil {
							fate.change(s, level)
						}
					})
				})
			}
		}
	}
}

// waitsFor reports whether a step comes after another one, in every order that a plan allows.
func waitsFor(p *planner.Plan, step, other int) bool {
	return slices.ContainsFunc(p.Steps[step].After, func(before int) bool { return before == other || waitsFor(p, before, other) })
}

// restarts returns a line that lets the object of a block restart.
func restarts(block string) string {
	if strings.HasPrefix(block, "vm") {
		return "memory = \"4GiB\""
	}
	return "paint = \"red\""
}

// holding returns a block with another line in it.
func holding(block, line string) string { return strings.Replace(block, "{\n", "{\n  "+line+"\n", 1) }

// A box whose making was cut short after it was there, and that is wanted elsewhere by now, is removed here and made there: its
// record does not say where it was made.
func TestHalfRecordedBoxMoves(t *testing.T) {
	got := plantree(t, "vm.a", nil, nil, nil, func(b string) string { return strings.Replace(b, "in    = box.b", "in    = vm.z", 1) }, func(s *scene) {
		r := s.state.Records[addr(t, "box.c")]
		r.Reserved = true
		s.state.Records[addr(t, "box.c")] = r
		for _, sys := range s.insides { // which tells no object where it is
			for i := range sys.inventory.Objects {
				all := sys.inventory.Objects[i].Attrs.AsValueMap()
				delete(all, "in")
				sys.inventory.Objects[i].Attrs = cty.ObjectVal(all)
			}
		}
	})
	if !strings.HasPrefix(got, "replace box.c: it is inside of box.b, and wanted inside of vm.z\n") {
		t.Errorf("plan:\n%s", got)
	}
}
