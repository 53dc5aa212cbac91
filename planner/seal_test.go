package planner_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/state"
)

// A seal is broken by whatever would make an apply do something else, and by
// nothing else.
func TestSeal(t *testing.T) {
	const bigger = "vm \"a\" {\n  memory = \"512MiB\"\n}\n"
	sealed := seal(t, sceneOf(t, bigger, nil))
	if d := cmp.Diff([]string{"0 down vm.a stop", "1 change vm.a redefine after [0]", "2 up vm.a start after [1]", "3 ready vm.a wait_ssh after [2]"}, sealed.Steps); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
	const another = "vm.a is not what it was, or would not become what was planned"
	for _, test := range []struct {
		name, spec string
		change     func(*scene)
		want       []string
		effect     []string
	}{
		{name: "nothing", spec: bigger},
		{name: "a comment", spec: "# a comment\n" + bigger},
		{
			name: "what changes by itself", spec: bigger,
			change: func(s *scene) {
				s.object().Findings = append(s.object().Findings, providers.Finding{Kind: providers.FindBroken})
			},
		},
		{name: "another value", spec: "vm \"a\" {\n  memory = \"768MiB\"\n}\n", want: []string{another}, effect: []string{"vm.a would not become what was planned, or is not what it was"}},
		{name: "another policy", spec: "vm \"a\" {\n  memory = \"512MiB\"\n  stop {\n    grace = \"7s\"\n  }\n}\n", want: []string{another}},
		{name: "another object", spec: bigger, change: func(s *scene) { s.object().Fingerprint = "another" }, want: []string{another}},
		{name: "the same state under another number", spec: bigger, change: func(s *scene) { s.state.Serial++ }},
		{name: "another state", spec: bigger, change: func(s *scene) { s.state.Serial++; s.started() }, want: []string{"the state was at serial 7, and is at 8 now"}},
		{
			name: "its mark was taken off", spec: bigger, change: func(s *scene) { s.object().Owner = nil },
			effect: []string{"vm.a would not become what was planned, or is not what it was"},
		},
		{name: "another state of the same number", spec: bigger, change: (*scene).started, want: []string{"the state is not what it was"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := seal(t, sceneOf(t, test.spec, test.change))
			got := sealed.Differs(now)
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("what differs (-want +got):\n%s", d)
			}
			if d := cmp.Diff(test.effect, sealed.DiffersInEffect(now)); d != "" {
				t.Errorf("what differs in effect (-want +got):\n%s", d)
			}
		})
	}
}

// Other steps are named, those that went and those that came.
func TestSealOfOtherSteps(t *testing.T) {
	sealed := seal(t, sceneOf(t, "vm \"a\" {\n  memory = \"512MiB\"\n}\n", nil))
	now := seal(t, sceneOf(t, "vm \"a\" {\n  memory  = \"512MiB\"\n  running = false\n}\n", nil))
	want := []string{
		"was planned, and is not any more: 2 up vm.a start after [1]",
		"was planned, and is not any more: 3 ready vm.a wait_ssh after [2]",
	}
	const another = "vm.a is not what it was, or would not become what was planned"
	if d := cmp.Diff(append(want[:2:2], another), sealed.Differs(now)); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
	for i, step := range want {
		want[i] = "was not planned: " + step[len("was planned, and is not any more: "):]
	}
	if d := cmp.Diff(append(want[:2:2], another), now.Differs(sealed)); d != "" {
		t.Errorf("steps the other way (-want +got):\n%s", d)
	}
}

// The effect of a change does not depend on the words of its reasons.
func TestSealLeavesReasonsOut(t *testing.T) {
	effect := func(mark providers.MarkEdit, keys providers.Verdict) string {
		s := sceneOf(t, "vm \"a\" {\n  memory = \"512MiB\"\n}\n", nil)
		p, err := s.plan()
		if err != nil {
			t.Fatal(err)
		}
		p.Changes[0].Mark, p.Changes[0].Rekey = &mark, &keys
		sealed, err := p.Seal(s.state, state.DigestKey{})
		if err != nil {
			t.Fatal(err)
		}
		return sealed.Effects["vm.a"]
	}
	one := effect(providers.MarkEdit{Reason: "it was moved"}, providers.Verdict{Applies: providers.Restart, Reason: "when it boots"})
	if got := effect(providers.MarkEdit{Reason: "a moved block"}, providers.Verdict{Applies: providers.Restart, Reason: "later"}); got != one {
		t.Error("other words make another effect")
	}
	if got := effect(providers.MarkEdit{Before: addr(t, "vm.b")}, providers.Verdict{Applies: providers.Restart}); got == one {
		t.Error("another mark makes no other effect")
	}
	if got := effect(providers.MarkEdit{}, providers.Verdict{Applies: providers.Live}); got == one {
		t.Error("keys that apply in another way make no other effect")
	}
}

// started counts another start of vm.a, by somebody else.
func (s *scene) started() {
	a := addr(s.t, "vm.a")
	r := s.state.Records[a]
	r.Starts++
	s.state.Records[a] = r
}

// sceneOf returns a scene with one applied VM, and with another spec by now.
func sceneOf(t *testing.T, spec string, change func(*scene)) *scene {
	t.Helper()
	s := after(t, "vm \"a\" {\n  memory = \"256MiB\"\n}\n")
	s.config = load(t, spec)
	if change != nil {
		change(s)
	}
	return s
}

func seal(t *testing.T, s *scene) planner.Seal {
	t.Helper()
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := p.Seal(s.state, state.DigestKey{})
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}
