//go:build linux

package acceptance_test

import (
	"encoding/json"
	"flag"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"vmctl/search"
)

var limaEdits = flag.Int("lima-edits", 20, "how many random edits are planned and applied on a real Lima home")

// Random edits of specs on a real Lima home, whose instances and disks Lima makes and qemu-img grows: every edit has a plan,
// and one apply leaves nothing to do but the changes that are always blocked. Nothing boots: what a boot adds is in the
// scripts.
//
// row X13, of edits on Lima that nothing cuts short
func TestRandomEditsOnLima(t *testing.T) {
	converged, blocked := 0, 0
	for i := range *limaEdits {
		edit := rapid.Custom(func(r *rapid.T) search.RandomEdit { return search.Draw(r, limaHost) }).Example(i)
		s := newCrashSite(t, operation{}, edit.String())
		s.write(unbooted(edit.Before))
		s.must("apply", "--auto-approve")
		for _, m := range edit.Moves {
			s.must("state", "mv", m[0], m[1])
		}
		s.write(unbooted(edit.After))
		causes, _ := s.blocked(edit.Addresses)
		s.must(allowing(edit.Addresses, excluding(causes, "apply", "--auto-approve")...)...)
		left, steps := s.blocked(edit.Addresses)
		switch {
		case steps > 0 && len(left) == 0:
			s.errorf("after one apply there is something left")
		case len(left) > 0:
			blocked++
		default:
			converged++
		}
		s.close()
		if s.failed {
			return
		}
	}
	t.Logf("%d edits converged after one apply, %d were blocked in part", converged, blocked)
}

// blocked returns the addresses of the changes that a plan blocks, and the number of its steps.
func (s *crashSite) blocked(replaceable []string) (all []string, steps int) {
	s.t.Helper()
	var plan struct {
		Changes []struct {
			Address string
			Blocked *struct{}
		}
		Steps []struct{}
	}
	text := s.must(allowing(replaceable, "plan", "--json")...)
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		s.t.Fatalf("%v:\n%s", err, text)
	}
	for _, c := range plan.Changes {
		if c.Blocked != nil {
			all = append(all, c.Address)
		}
	}
	return all, len(plan.Steps)
}

func allowing(addresses []string, args ...string) []string {
	for _, a := range addresses {
		args = append(args, "--allow-replace="+a)
	}
	return args
}

func excluding(addresses []string, args ...string) []string {
	for _, a := range addresses {
		args = append(args, "--exclude="+a)
	}
	return args
}

var bootBlock = regexp.MustCompile(`(?s)  boot \{\n.*?\n  \}\n`)

// unbooted returns a spec of the search with instances of Lima that are off.
func unbooted(text string) string {
	text = bootBlock.ReplaceAllString(text, "  memory   = \"256MiB\"\n  accel    = \"tcg\"\n  plain    = true\n  image    = \"guest/empty.qcow2\"\n  root_disk {\n    size = \"2MiB\"\n  }\n")
	return strings.NewReplacer("provider.sim.here", "provider.lima.here", "running = true", "running = false").Replace(text)
}
