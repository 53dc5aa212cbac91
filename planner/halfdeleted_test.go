package planner_test

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/state"
)

// An earlier run that began to delete an object had the user's consent: a ceiling does not keep the rest of
// the object. It keeps an object that lost a part in any other way.
func TestCeilingOfHalfDeletedObject(t *testing.T) {
	const applied = "vm \"a\" {\n  name = \"one\"\n  accel = \"tcg\"\n  running = false\n  lifecycle {\n    on_change = { name = \"replace\" }\n  }\n}\n"
	renamed := strings.Replace(applied, `"one"`, `"two"`, 1)
	strict := strings.Replace(renamed, "on_change = { name = \"replace\" }", "", 1)
	began := func(how string) func(*scene) {
		return func(s *scene) {
			s.interrupt("vm.a", "delete")
			e := &s.state.Interrupted[0]
			e.How, e.ID = how, string(s.object().ID)
		}
	}
	for _, test := range []struct {
		name, spec string
		change     func(*scene)
		want       planner.Cause // of the block; "": replaced
	}{
		{name: "a part was lost", spec: renamed, want: planner.CauseCeiling},
		{name: "a replacement began to delete it", spec: renamed, change: began(state.Replacing)},
		{name: "a replacement that a flag allowed began to delete it", spec: strict, change: began(state.Replacing)},
		{name: "a replacement began to delete it, and the spec is as before", spec: applied, change: began(state.Replacing)},
		{name: "a destruction began to delete it", spec: renamed, change: began(state.Deleting)},
		{name: "a destruction did not come to the deletion", spec: renamed, change: began(state.Destroying), want: planner.CauseCeiling},
		{name: "another step was interrupted", spec: renamed, change: began(""), want: planner.CauseCeiling},
		{name: "another object was half deleted", spec: renamed, want: planner.CauseCeiling, change: func(s *scene) {
			began(state.Replacing)(s)
			s.state.Interrupted[0].ID = "another"
		}},
		{name: "somebody changed it since", spec: renamed, want: planner.CauseCeiling, change: func(s *scene) {
			began(state.Replacing)(s)
			s.object().Owner.Generation = 2
		}},
		{name: "the other run is still at it", spec: renamed, want: planner.CauseCeiling, change: func(s *scene) {
			began(state.Replacing)(s)
			s.options.Held = true
		}},
		{name: "prevent_destroy counts", spec: strings.Replace(renamed, "lifecycle {", "lifecycle {\n    prevent_destroy = true", 1), change: began(state.Replacing), want: planner.CauseProtected},
		{name: "what could not be read is left alone", spec: renamed, want: planner.CauseUnknown, change: func(s *scene) {
			began(state.Replacing)(s)
			s.object().Unreadable = map[string]string{"accel": "the socket is closed"}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, applied)
			s.config = load(t, test.spec)
			shown := s.object().Attrs.AsValueMap()
			shown["accel"] = cty.NullVal(cty.String)
			s.object().Attrs = cty.ObjectVal(shown)
			if test.change != nil {
				test.change(s)
			}
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			got := planner.Cause("")
			if b := p.Changes[0].Blocked; b != nil {
				got = b.Cause
			}
			if p.Changes[0].Action != providers.ReplaceIt || got != test.want {
				t.Errorf("%s, blocked by %q; want replace, blocked by %q\n%s", p.Changes[0].Action, got, test.want, text(p))
			}
		})
	}
}
