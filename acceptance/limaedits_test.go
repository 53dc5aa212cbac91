//go:build linux

package acceptance_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"vmctl/search"
)

var (
	limaEdits    = flag.Int("lima-edits", 20, "how many random edits are planned and applied on a real Lima home")
	limaRestarts = flag.Int("lima-restarts", 6, "how many random edits are applied to instances of Lima that run")
)

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

// Random edits of instances that run: they are restarted, stopped and replaced, their disks grow, move and get other names. All
// that was written to a disk that no step replaces or deletes is there afterwards. What runs is a BIOS that finds nothing to boot
// and hears no request to end.
func TestRandomEditsOfRunningLima(t *testing.T) {
	kept, restarted := 0, 0
	for i := range *limaRestarts {
		edit := rapid.Custom(func(r *rapid.T) search.RandomEdit { return search.Draw(r, limaHost) }).Example(1000 + i)
		s := newCrashSite(t, operation{}, edit.String())
		s.write(unbooted(edit.Before))
		s.must("apply", "--auto-approve")
		written := map[string]byte{}
		for _, c := range s.changes() {
			if path := s.limaDisk(c); path != "" {
				written[c.Before.ID] = byte(len(written) + 1)
				s.onDisk("write", "-P", written[c.Before.ID], path)
			}
		}
		s.write(deaf(edit.Before))
		s.must("apply", "--auto-approve")
		for _, m := range edit.Moves {
			s.must("state", "mv", m[0], m[1])
		}
		s.write(deaf(edit.After))
		causes, _ := s.blocked(edit.Addresses)
		plan := s.changes(allowing(edit.Addresses, excluding(causes)...)...)
		text := s.must(allowing(edit.Addresses, excluding(causes, "apply", "--auto-approve")...)...)
		restarted += strings.Count(text, ": stopped in ")
		if left, steps := s.blocked(edit.Addresses); steps > 0 && len(left) == 0 {
			s.errorf("after one apply there is something left")
		}
		there := map[string]string{}
		for _, c := range s.changes() {
			there[c.Before.ID] = s.limaDisk(c)
		}
		for _, c := range plan {
			pattern, wrote := written[c.Before.ID]
			if !wrote || c.Action == "replace" || c.Action == "destroy" {
				continue
			}
			path := there[c.Before.ID]
			if path == "" { // vmctl has let go of it
				path = s.limaDisk(c)
			}
			s.onDisk("read", "-P", pattern, path)
			kept++
		}
		s.close()
		if s.failed {
			return
		}
	}
	if kept == 0 || restarted == 0 {
		t.Errorf("%d disks were kept and %d instances stopped: this has proven nothing", kept, restarted)
	}
	t.Logf("%d disks have what was written to them, after %d stops", kept, restarted)
}

// plannedChange is a change of a plan, as far as these tests read it.
type plannedChange struct {
	Address, Action string
	Before          struct{ ID, Name string }
}

// changes returns the changes of a plan.
func (s *crashSite) changes(args ...string) []plannedChange {
	s.t.Helper()
	var plan struct{ Changes []plannedChange }
	text := s.must(append([]string{"plan", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		s.t.Fatalf("%v:\n%s", err, text)
	}
	return plan.Changes
}

// limaDisk returns the path of the file that holds what is on a disk of a Lima home, or on the root disk of an instance; "": there
// is none.
func (s *crashSite) limaDisk(c plannedChange) string {
	switch kind, _, _ := strings.Cut(c.Address, "."); {
	case c.Before.ID == "":
		return ""
	case kind == "disk":
		return filepath.Join(s.data, "lima-here", "_disks", c.Before.Name, "datadisk")
	default:
		return filepath.Join(s.data, "lima-here", c.Before.Name, "disk")
	}
}

// onDisk writes a pattern to a disk, or demands that it is there, beside whatever uses the disk.
func (s *crashSite) onDisk(act, flag string, pattern byte, path string) {
	s.t.Helper()
	args := []string{"-c", fmt.Sprintf("%s %s %d 64k 64k", act, flag, pattern), path}
	if act == "read" {
		args = append([]string{"-U", "-r"}, args...)
	}
	qemuIO, err := exec.LookPath("qemu-io")
	if err != nil {
		s.t.Fatal(err)
	}
	said, code := s.program(qemuIO, args...)
	if code != 0 || strings.Contains(said, "verification failed") {
		s.errorf("%s the pattern %d at %s: %s", act, pattern, path, said)
	}
}

// deaf returns a spec of the search with instances of Lima that run, as far as the search has drawn them so.
func deaf(text string) string {
	text = strings.ReplaceAll(unbooted(strings.ReplaceAll(text, "running = true", "running=on")), "running=on", "running = true")
	const noWait = "  ssh {\n    wait = false\n  }\n"
	text = strings.ReplaceAll(text, noWait, "")
	// A stop would wait longer for a guest that is still starting.
	return strings.ReplaceAll(text, "  plain    = true\n", "  ssh {\n    wait         = false\n    wait_timeout = \"1s\"\n  }\n  plain    = true\n  stop {\n    grace = \"1s\"\n  }\n")
}
