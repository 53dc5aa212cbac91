package planner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// foresees makes the system of vm.a say what it would do for any change, and counts how often it is asked.
func (s *scene) foresees(asked *int, acts ...providers.Act) {
	s.system(here).preview = func(providers.Change) (*providers.Preview, error) {
		*asked++
		return &providers.Preview{Acts: acts}, nil
	}
}

// A system that alone can tell what a change does is asked once for each change. What it would destroy for an edit is as if the edit
// needed a replacement.
func TestPreview(t *testing.T) {
	const bigger = "vm \"a\" {\n  memory = \"512MiB\"\n}\n"
	const allows = "vm \"a\" {\n  memory = \"512MiB\"\n  lifecycle {\n    on_change = { memory = \"replace\" }\n  }\n}\n"
	live, losing := providers.Act{Text: "update x", Applies: providers.Live}, providers.Act{Text: "replace y", Applies: providers.Replace}
	for _, test := range []struct {
		name, spec string
		change     func(*scene)
		acts       []providers.Act
		asked      int
		blocked    string
	}{
		{name: "nothing is done", spec: one, acts: []providers.Act{losing}},
		{name: "nothing is lost", spec: bigger, acts: []providers.Act{live}, asked: 1},
		{
			name: "an edit destroys something", spec: bigger, acts: []providers.Act{live, losing}, asked: 1,
			blocked: "provider.libvirt.default would replace y, and on_change allows at most restart",
		},
		{name: "the block allows it", spec: allows, acts: []providers.Act{losing}, asked: 1},
		{
			name: "it is allowed once", spec: bigger, acts: []providers.Act{losing}, asked: 1,
			change: func(s *scene) { s.options.Allow.Replace = map[spec.Address]bool{addr(s.t, "vm.a"): true} },
		},
		{name: "it is to go", spec: "", acts: []providers.Act{losing}, asked: 1},
		{name: "it is out of scope", spec: bigger, acts: []providers.Act{losing}, change: func(s *scene) {
			s.options.Scope.Excludes = []spec.Address{addr(s.t, "vm.a")}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, asked := sceneOf(t, test.spec, test.change), 0
			s.foresees(&asked, test.acts...)
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if asked != test.asked {
				t.Errorf("it was asked %d times, want %d", asked, test.asked)
			}
			blocked := ""
			for _, c := range p.Changes {
				if c.Blocked != nil {
					blocked = c.Blocked.Error()
				}
				if asked == 0 {
					continue
				}
				if d := cmp.Diff(test.acts, c.Preview.Acts); d != "" {
					t.Errorf("the preview (-want +got):\n%s", d)
				}
			}
			if blocked != test.blocked {
				t.Errorf("blocked: %q, want %q", blocked, test.blocked)
			}
		})
	}
}

// A system that refuses a change, or panics, when it is asked blocks that change alone.
func TestPreviewFails(t *testing.T) {
	for why, plant := range map[string]func(*system){
		"refused": func(s *system) {
			s.preview = func(providers.Change) (*providers.Preview, error) { return nil, errors.New("refused") }
		},
		"the provider panicked": func(s *system) { s.panics = "preview" },
	} {
		s := sceneOf(t, "vm \"a\" {\n  memory = \"512MiB\"\n}\n", nil)
		plant(s.system(here))
		p, err := s.plan()
		if err != nil {
			t.Fatal(err)
		}
		if b := p.Changes[0].Blocked; b == nil || !strings.Contains(b.Error(), why) || len(p.Steps) > 0 {
			t.Errorf("%s: blocked %v, with %d steps", why, b, len(p.Steps))
		}
	}
}

// What the system would do is sealed: if it would do something else, the plan is not the one that was approved.
func TestPreviewIsSealed(t *testing.T) {
	sealed := func(acts ...providers.Act) map[string]string {
		s, asked := sceneOf(t, "vm \"a\" {\n  memory = \"512MiB\"\n}\n", nil), 0
		s.foresees(&asked, acts...)
		p, err := s.plan()
		if err != nil {
			t.Fatal(err)
		}
		seal, err := p.Seal(s.state, state.DigestKey{})
		if err != nil {
			t.Fatal(err)
		}
		return seal.Changes
	}
	act := providers.Act{Text: "update x", Applies: providers.Live}
	if d := cmp.Diff(sealed(act), sealed(act)); d != "" {
		t.Errorf("the same preview has other seals:\n%s", d)
	}
	if cmp.Equal(sealed(act), sealed(act, act)) {
		t.Error("another preview has the same seal")
	}
}
