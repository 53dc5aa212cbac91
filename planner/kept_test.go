package planner_test

import (
	"slices"
	"strings"
	"testing"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// A provider hears of which objects a record tells that they were made, unless a run that was cut short was at them: only of those it
// knows that vmctl did not remove them.
func TestKept(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*scene)
		want   bool
	}{
		{"its record is whole", func(*scene) {}, true},
		{"only its ID was reserved", func(s *scene) {
			r := s.state.Records[addr(s.t, "vm.a")]
			r.Reserved = true
			s.state.Records[addr(s.t, "vm.a")] = r
		}, false},
		{"its destruction was cut short", func(s *scene) {
			s.interrupt("vm.a", "delete")
			s.state.Interrupted[0].How = state.Deleting
		}, false},
		{"a change of it was cut short", func(s *scene) { s.interrupt("vm.a", "redefine") }, false},
		{"a change of another one was cut short", func(s *scene) { s.interrupt("vm.b", "redefine") }, true},
		{"it has no record", func(s *scene) { s.forget("vm.a") }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, `vm "a" { accel = "tcg" }`)
			test.change(s)
			if _, err := s.plan(); err != nil {
				t.Fatal(err)
			}
			known := s.system("qemu:///session").known
			i := slices.IndexFunc(known, func(k providers.Known) bool { return k.Kind == spec.VM && k.Address.Name == "a" })
			if i < 0 {
				t.Fatalf("the provider is not asked about it: %+v", known)
			}
			if got := known[i].Kept; got != test.want {
				t.Errorf("kept: %t, want %t", got, test.want)
			}
		})
	}
}

// An object that its provider cannot account for is a finding with the provider's advice.
func TestUnknownWithAdvice(t *testing.T) {
	s := after(t, `vm "a" { accel = "tcg" }`)
	o := *s.object()
	s.here().Objects = nil
	s.here().Unknown = []providers.Unknown{{Kind: o.Kind, ID: o.ID, Name: o.Name, Reason: "its state is gone", Next: providers.Say("put it back")}}
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.Findings, func(f providers.Finding) bool { return f.Kind == providers.FindUnknown })
	if i < 0 || p.Findings[i].Address != addr(t, "vm.a") || len(p.Findings[i].Next) != 1 || p.Findings[i].Next[0].Text != "put it back" ||
		!strings.Contains(p.Findings[i].Evidence[0], "its state is gone") || len(p.Steps) > 0 {
		t.Errorf("findings %+v and steps %v", p.Findings, p.Steps)
	}
}
