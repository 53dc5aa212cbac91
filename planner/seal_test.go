package planner_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
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

// The files that the system of a change reads, such as those of a module, are named where they differ, by their paths alone: a
// file may hold a secret.
func TestSealNamesTheFilesThatDiffer(t *testing.T) {
	const another = "vm.a is not what it was, or would not become what was planned"
	const covers = "vm.a: a plan covers every file below the folder of its module: what writes there while it is planned has to write elsewhere"
	key := newKey(t)
	sealOf := func(t *testing.T, key state.DigestKey, reads map[string]string) planner.Seal {
		t.Helper()
		s := sceneOf(t, "vm \"a\" {\n  memory = \"512MiB\"\n}\n", nil)
		s.system(here).preview = func(providers.Change) (*providers.Preview, error) {
			return &providers.Preview{Basis: fmt.Sprint(reads), Reads: reads}, nil
		}
		p, err := s.plan()
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := p.Seal(s.state, key)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(sealed)
		if err != nil {
			t.Fatal(err)
		}
		for path, digest := range reads {
			if strings.Contains(string(text), digest) {
				t.Errorf("the seal has the digest of %s, which tells whether a guess at the file is right:\n%s", path, text)
			}
		}
		return sealed
	}
	before := map[string]string{"b.tf": "digest-1", "a.tf": "digest-2", "same.tf": "digest-3", "old.tf": "digest-1"}
	for _, test := range []struct {
		name     string
		was, now map[string]string
		keys     [2]state.DigestKey
		want     []string
	}{
		{name: "nothing", was: before, now: maps.Clone(before), keys: [2]state.DigestKey{key, key}},
		{
			name: "other, new and gone", was: before, keys: [2]state.DigestKey{key, key},
			now: map[string]string{"b.tf": "digest-4", "a.tf": "digest-5", "same.tf": "digest-3", "new.tf": "digest-1"},
			want: []string{
				another, "vm.a: the file a.tf has changed since", "vm.a: the file b.tf has changed since",
				"vm.a: the file new.tf is new", "vm.a: the file old.tf is gone", covers,
			},
		},
		{
			name: "two files change places", was: map[string]string{"a.tf": "digest-1", "b.tf": "digest-2"}, keys: [2]state.DigestKey{key, key},
			now: map[string]string{"a.tf": "digest-2", "b.tf": "digest-1"},
			want: []string{
				another, "vm.a: the file a.tf has changed since", "vm.a: the file b.tf has changed since", covers,
			},
		},
		{name: "none was read", was: nil, now: before, keys: [2]state.DigestKey{key, key}, want: []string{another}},
		{name: "none is read now", was: before, now: nil, keys: [2]state.DigestKey{key, key}, want: []string{another}},
		{name: "no key when it was planned", was: before, now: map[string]string{"b.tf": "digest-4"}, keys: [2]state.DigestKey{{}, key}, want: []string{another}},
		{name: "no key now", was: before, now: map[string]string{"b.tf": "digest-4"}, keys: [2]state.DigestKey{key, {}}, want: []string{another}},
	} {
		t.Run(test.name, func(t *testing.T) {
			was, now := sealOf(t, test.keys[0], test.was), sealOf(t, test.keys[1], test.now)
			if d := cmp.Diff(test.want, was.Differs(now)); d != "" {
				t.Errorf("what differs (-want +got):\n%s", d)
			}
		})
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
