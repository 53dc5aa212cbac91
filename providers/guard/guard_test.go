package guard_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

var (
	dev   = spec.Address{Kind: spec.VM, Name: "dev"}
	was   = spec.Address{Kind: spec.VM, Name: "was"}
	other = spec.Address{Kind: spec.VM, Name: "other"}
)

// stop returns the guard of a step that stops vm.dev, whose earlier address is vm.was.
func stop() guard.Guard {
	return guard.Guard{
		Work: providers.Work{
			Step: providers.Step{Op: "stop", Address: dev, Object: "id", Name: "lab.dev"}, Expect: "v1;a=1",
			Prior: cty.EmptyObjectVal, Was: []spec.Address{was},
		},
		Project: providers.Project{Name: "lab", ID: "lineage"},
		Thing:   "machine", Look: func(now guard.Seen) string { return "show " + now.Name },
	}
}

func marked(id string, a spec.Address, of providers.ID) *providers.Mark {
	return &providers.Mark{ID: id, Address: a, Of: of}
}

func code(err error) string {
	var f *providers.Problem
	if errors.As(err, &f) {
		return string(f.Outcome) + " " + f.Code
	}
	return ""
}

func TestOnlyTheStepsOwnObjectIsItsOwn(t *testing.T) {
	for _, tc := range []struct {
		name string
		mark *providers.Mark
		step func(*providers.Work)
		owns bool
	}{
		{"its mark", marked("lineage", dev, "id"), nil, true},
		{"the mark of the address that it had", marked("lineage", was, "id"), nil, true},
		{"the mark of another address", marked("lineage", other, "id"), nil, false},
		{"the mark of another project", marked("theirs", dev, "id"), nil, false},
		{"the mark of what it is a copy of", marked("lineage", dev, "original"), nil, false},
		{"no mark, and the record names it", nil, nil, true},
		{"no mark, and the record names another", nil, func(w *providers.Work) { w.Object = "another" }, false},
		{"no mark and no record", nil, func(w *providers.Work) { w.Prior = cty.NilVal }, false},
		{"no mark, and it is imported", nil, func(w *providers.Work) {
			w.Prior, w.Imports = cty.NilVal, true
		}, true},
		{"no mark, and one is to be made", nil, func(w *providers.Work) { w.Phase = providers.PhaseMake }, false},
	} {
		g := stop()
		if tc.step != nil {
			tc.step(&g.Work)
		}
		now := &guard.Seen{ID: "id", Name: "lab.dev", Mark: tc.mark}
		err := g.Mine(now)
		if owns := err == nil; owns != tc.owns || g.Owns(*now) != tc.owns {
			t.Errorf("%s: own %t, want %t (%v)", tc.name, owns, tc.owns, err)
		}
		if !tc.owns && code(err) != "refused not_ours" {
			t.Errorf("%s: %v is a failure %q", tc.name, err, code(err))
		}
	}
	if err := stop().Mine(nil); err != nil {
		t.Errorf("what is absent: %v", err)
	}
}

func TestExpected(t *testing.T) {
	for _, tc := range []struct {
		name, expect string
		now          *guard.Seen
		says         string // "": all is well
	}{
		{"as planned", "v1;a=1", &guard.Seen{Fingerprint: "v1;a=1"}, ""},
		{"absent, as planned", "", nil, ""},
		{"changed", "v1;a=1", &guard.Seen{Name: "lab.dev", Fingerprint: "v1;a=2"}, "stop vm.dev: machine lab.dev was changed since the plan was made"},
		{"gone", "v1;a=1", nil, "stop vm.dev: machine lab.dev (id) is gone since the plan was made"},
		{"appeared", "", &guard.Seen{ID: "new", Name: "lab.dev", Fingerprint: "v1;a=1"}, "stop vm.dev: machine lab.dev (new) exists, and the plan was made when it did not"},
	} {
		g := stop()
		g.Work.Expect = tc.expect
		err := g.Expected(tc.now)
		if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.says) || code(err) != "stale stale_plan") {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
	g := stop()
	g.Work.Expect = ""
	var f *providers.Problem
	if err := g.There(nil); code(err) != "failed absent" || !errors.As(err, &f) || len(f.Next) == 0 {
		t.Errorf("what has to be there is not: %v", err)
	}
}

// Two fingerprints are equal if and only if nothing differs, whatever the values are.
func TestDifferencesNameWhatDiffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var one, two guard.Print
		var differ []string
		for _, name := range []string{"a", "b=;", "c%"} {
			x, y := rapid.String().Draw(t, "before"), rapid.String().Draw(t, "after")
			if rapid.Bool().Draw(t, "same") {
				y = x
			}
			one.Add(name, x)
			two.Add(name, y)
			if x != y {
				differ = append(differ, name)
			}
		}
		said := guard.Differences(one.String(), two.String())
		if (one.String() == two.String()) != (len(differ) == 0) || len(said) != 2*len(differ) {
			t.Fatalf("%q and %q differ in %q, and it says %q", one, two, differ, said)
		}
		for _, name := range differ {
			if !slices.ContainsFunc(said, func(line string) bool { return strings.HasPrefix(line, "found "+name+" ") }) {
				t.Fatalf("%q differs, and it says %q", name, said)
			}
		}
	})
}
