package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vmctl/internal/real"
)

// changing is a spec whose every apply has something to do: each one changes what the last
// one wrote.
const changing = spec + `
variable "grace" {
  type = string
}

provider "sim" "here" {}

vm "dev" {
  provider = provider.sim.here
  cpus     = 1
  memory   = "256MiB"

  stop {
    grace = var.grace
  }
}
`

// applied holds the result of one apply, and the time during which it held the run lock.
type applied struct {
	name        string
	code        int
	first, last time.Time // of its steps' events
	stderr      string
}

// Fifty applies run on one project at once: the lock has one holder at a time, no change is
// lost, and each apply ends with 0 or with the code of a held lock.
//
// row X05
func TestFiftyApplies(t *testing.T) {
	real.Long(t)
	s := newSite(t, changing)
	all := make([]applied, 50)
	var wait sync.WaitGroup
	for i := range all {
		patience := "10m"
		if i%5 == 0 {
			patience = "0s"
		}
		wait.Go(func() { all[i] = apply(s, i, patience) })
	}
	wait.Wait()
	var done []applied
	for i, a := range all {
		switch {
		case a.code == 0:
			done = append(done, a)
		case a.code == 7 && i%5 == 0 && strings.Contains(a.stderr, "(pid "):
		default:
			t.Errorf("%s: exit code %d\n%s", a.name, a.code, a.stderr)
		}
	}
	slices.SortFunc(done, func(a, b applied) int { return a.first.Compare(b.first) })
	for i := range len(done) - 1 {
		if a, b := done[i], done[i+1]; a.last.After(b.first) {
			t.Errorf("%s worked until %s, and %s from %s", a.name, a.last, b.name, b.first)
		}
	}
	if len(done) < 40 {
		t.Errorf("%d applies are done, want at least the 40 that wait", len(done))
	}
	var state struct {
		Serial      int
		Interrupted []any
	}
	text, err := os.ReadFile(filepath.Join(s.home, "d", "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	// The first journal begins with a snapshot of nothing.
	if err := json.Unmarshal(text, &state); err != nil || state.Serial != len(done) || len(state.Interrupted) != 0 {
		t.Errorf("after %d applies the state has serial %d and interruptions %v (%v)", len(done), state.Serial, state.Interrupted, err)
	}
	if vms, err := processesIn(s.home); err != nil || len(vms) != 1 {
		t.Errorf("processes of the one VM: %v, %v", vms, err)
	}
}

// apply runs vmctl apply with its own value of a variable.
func apply(s *site, i int, patience string) applied {
	cmd := s.vmctl("apply", "--auto-approve", "--json", "--lock-timeout="+patience, fmt.Sprintf("--var=grace=%ds", 100+i))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	a := applied{name: fmt.Sprintf("apply %d", i)}
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		s.t.Error(err)
	}
	a.code, a.stderr = cmd.ProcessState.ExitCode(), stderr.String()
	for line := range strings.Lines(stdout.String()) {
		var event struct{ At time.Time }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			s.t.Errorf("%s says %q: %v", a.name, line, err)
		}
		if event.At.IsZero() {
			continue
		}
		if a.first.IsZero() {
			a.first = event.At
		}
		a.last = event.At
	}
	return a
}
