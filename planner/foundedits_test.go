package planner_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// An edit that the system of an object has found is carried out like one of the block, unless the command is about something
// else. A seal tells where it leads to.
func TestEditsThatASystemFinds(t *testing.T) {
	edit := func(to string) []providers.Edit {
		return []providers.Edit{{
			Path: "id", Before: cty.StringVal("one"), After: cty.StringVal(to),
			Verdict: providers.Verdict{Applies: providers.Replace, Reason: "it is another one by now"},
		}}
	}
	found := func(to string, change func(*scene)) *scene {
		s := after(t, one+note)
		inventory := &s.inside("vm.a").inventory
		for i := range inventory.Objects {
			inventory.Objects[i].Edits = edit(to)
		}
		change(s)
		return s
	}
	for _, test := range []struct {
		name   string
		change func(*scene)
		want   string
	}{
		{name: "it is replaced", change: func(*scene) {}, want: "replace box.note: id: it is another one by now"},
		{name: "a VM is to run", change: func(s *scene) { s.options.Running = map[spec.Address]bool{addr(s.t, "vm.a"): true} }, want: ""},
		{name: "only what is recorded counts", change: func(s *scene) { s.options.Heal = true }, want: ""},
		{name: "it goes back to its record", change: func(s *scene) { s.options.Revert = map[spec.Address]bool{addr(s.t, "box.note"): true} }, want: ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := found("two", test.change).plan()
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(text(p), "\n")
			if first != test.want {
				t.Errorf("the plan says %q, want %q", first, test.want)
			}
		})
	}
	none := func(*scene) {}
	sealed := seal(t, found("two", none))
	if d := cmp.Diff([]string{"box.note is not what it was, or would not become what was planned"}, sealed.Differs(seal(t, found("three", none)))); d != "" {
		t.Errorf("with another edit (-want +got):\n%s", d)
	}
	if d := sealed.Differs(seal(t, found("two", none))); len(d) > 0 {
		t.Errorf("with the same edit it differs: %q", d)
	}
}
