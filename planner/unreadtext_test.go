package planner_test

import (
	"fmt"
	"testing"

	"vmctl/spec"
)

// unread makes the text of an attribute of vm.a one that was not read.
func (s *scene) unread(why spec.UnreadError) {
	for i := range s.config.Resources {
		if r := &s.config.Resources[i]; r.Address.Name == "a" {
			r.Unread = &why
		}
	}
}

// A block with a text that was not read has no steps; where nobody tried to read it, an object that was applied keeps
// its own, and is planned as the rest of its block says.
func TestWhatNamesAnUnreadText(t *testing.T) {
	const applied, edited = "vm \"a\" {\n  memory = \"1GiB\"\n}\n", "vm \"a\" {\n  memory = \"2GiB\"\n}\nvm \"b\" {}\n"
	failed := spec.UnreadError{Flaw: spec.Flaw{Path: "memory", Detail: "no such text"}}
	skipped := spec.UnreadError{Flaw: failed.Flaw, Skipped: true}
	for name, c := range map[string]struct {
		applied string
		why     spec.UnreadError
		blocked string
	}{
		"failed":            {applied: applied, why: failed, blocked: "vm.a missing_means: no such text: vmctl validate\n"},
		"failed, not made":  {why: failed, blocked: "vm.a missing_means: no such text: vmctl validate\n"},
		"skipped":           {applied: applied, why: skipped},
		"skipped, not made": {why: skipped, blocked: "vm.a missing_means: no such text: vmctl apply\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := after(t, c.applied)
			s.config = load(t, edited)
			s.unread(c.why)
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			for _, change := range p.Changes {
				if change.Blocked != nil {
					said += fmt.Sprintf("%s %s: %s: vmctl %s\n", change.Address, change.Blocked.Cause, change.Blocked.Error(), change.Blocked.Next[0].Args[0])
				}
			}
			if said != c.blocked {
				t.Errorf("blocked:\n%s\nwant:\n%s", said, c.blocked)
			}
			if steps := stepsOf(p, "vm.a"); steps != "" {
				t.Errorf("vm.a has steps: %s", steps)
			}
			if stepsOf(p, "vm.b") == "" {
				t.Errorf("vm.b has no steps:\n%s", text(p))
			}
		})
	}
}
