package planner_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

func TestMoves(t *testing.T) {
	const web = "vm \"web\" {\n  for_each = toset([\"x\", \"y\"])\n}\n"
	moved := func(from, to string) string { return "moved {\n  from = " + from + "\n  to   = " + to + "\n}\n" }
	for _, test := range []struct {
		name, spec string
		records    []string
		want       []string
	}{
		{name: "none", spec: web, records: []string{`vm.web["x"]`}},
		{name: "renamed", spec: web + moved("vm.old", "vm.web"), records: []string{`vm.old["x"]`, `vm.old["y"]`}, want: []string{`vm.old["x"] -> vm.web["x"]`, `vm.old["y"] -> vm.web["y"]`}},
		{name: "put under a key", spec: web + moved("vm.old", `vm.web["x"]`), records: []string{"vm.old"}, want: []string{`vm.old -> vm.web["x"]`}},
		{name: "another key", spec: web + moved(`vm.web["z"]`, `vm.web["x"]`), records: []string{`vm.web["z"]`}, want: []string{`vm.web["z"] -> vm.web["x"]`}},
		{name: "one after the other", spec: web + moved("vm.older", "vm.old") + "vm \"old\" {}\n", records: []string{"vm.older"}, want: []string{"vm.older -> vm.old"}},
		{name: "one after the other, and where it was between is in no block", spec: web + moved("vm.oldest", "vm.older") + moved("vm.older", "vm.web"), records: []string{`vm.oldest["x"]`, `vm.older["y"]`}, want: []string{`vm.older["y"] -> vm.web["y"]`, `vm.oldest["x"] -> vm.web["x"]`}},
		{name: "the instance before its block", spec: web + moved("vm.old", "vm.web") + moved(`vm.old["z"]`, `vm.web["x"]`), records: []string{`vm.old["y"]`, `vm.old["z"]`}, want: []string{`vm.old["y"] -> vm.web["y"]`, `vm.old["z"] -> vm.web["x"]`}},
		{name: "not where another one is", spec: web + moved("vm.old", `vm.web["x"]`), records: []string{"vm.old", `vm.web["x"]`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &state.Snapshot{Records: map[spec.Address]state.Record{}, Forgotten: map[string]spec.Address{}}
			for _, r := range test.records {
				s.Records[addr(t, r)] = state.Record{Kind: spec.VM, ID: "id of " + r, Name: r}
			}
			entries := planner.Moves(load(t, test.spec), s)
			var got []string
			for _, e := range entries {
				got = append(got, fmt.Sprintf("%s -> %s", e.From, e.Address))
			}
			slices.Sort(got)
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("moves (-want +got):\n%s", d)
			}
			after := s.With(entries...)
			for _, e := range entries {
				if r, ok := after.Records[e.Address]; !ok || r.ID != e.ID || !slices.Contains(r.Was, e.From) {
					t.Errorf("after the move %s has %+v", e.Address, r)
				}
			}
			if len(after.Records) != len(test.records) || len(s.Records) != len(test.records) {
				t.Errorf("%d records became %d", len(s.Records), len(after.Records))
			}
		})
	}
}

// A plan writes down the moves of what is in its scope, deferred or not.
func TestMovesOfAPlan(t *testing.T) {
	move := func(to string) state.Entry {
		return state.Entry{Kind: state.Note, Op: state.Moved, From: addr(t, "vm.old"), Address: addr(t, to)}
	}
	all := []state.Entry{move("vm.out"), move("vm.in"), move("vm.late")}
	p := &planner.Plan{
		Changes:  []planner.Change{{Change: providers.Change{Address: addr(t, "vm.in")}}},
		Deferred: []planner.Deferred{{Address: addr(t, "vm.late"), Until: addr(t, "vm.in")}},
	}
	if got := p.Moves(all); len(got) > 0 {
		t.Errorf("nobody is asked, and there is written: %v", got)
	}
	p.Steps = []planner.Step{{}}
	var got []string
	for i, e := range p.Moves(all) {
		got = append(got, e.Address.String())
		if e.Step != i {
			t.Errorf("%s is entry %d, and says %d", e.Address, i, e.Step)
		}
	}
	if d := cmp.Diff([]string{"vm.in", "vm.late"}, got); d != "" {
		t.Errorf("moves (-want +got):\n%s", d)
	}
}
