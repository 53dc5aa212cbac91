package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"vmctl/search"
)

var randomEdits = flag.Int("random-edits", 20, "how many random edits the real program plans and applies")

// Random edits of specs, with the real program on a simulated host: every edit has a plan,
// and one apply leaves nothing to do but the changes that are always blocked.
//
// row X13, of edits that nothing cuts short
func TestRandomEditsWithTheProgram(t *testing.T) {
	count := *randomEdits
	if testing.Short() {
		count = min(count, 3)
	}
	plans, converged, blocked := 0, 0, 0
	for i := range count {
		edit := rapid.Custom(func(r *rapid.T) search.RandomEdit {
			return search.Draw(r, spec+"provider \"sim\" \"here\" {\n  weightless = true\n}\n")
		}).Example(i)
		p := newRealProgram(t, edit)
		p.write(edit.Before)
		p.apply(nil)
		for _, m := range edit.Moves {
			p.run(0, "state", "mv", m[0], m[1])
		}
		p.write(edit.After)
		p.addresses = edit.Addresses
		causes, _ := p.plan()
		plans++
		p.apply(causes)
		left, steps := p.plan()
		switch {
		case steps > 0 && len(left) == 0:
			t.Errorf("edit %d: after one apply there is left\n%s\n%s", i, p.last, edit)
		case len(left) > 0:
			blocked++
		default:
			converged++
		}
	}
	t.Logf("%d plans, %d converged after one apply, %d were blocked in part", plans, converged, blocked)
}

// realProgram runs the real vmctl in folders of its own.
type realProgram struct {
	t         *testing.T
	dir       string
	addresses []string
	edit      search.RandomEdit
	last      string // its last output
}

func newRealProgram(t *testing.T, edit search.RandomEdit) *realProgram {
	t.Helper()
	p := &realProgram{t: t, dir: t.TempDir(), edit: edit}
	for _, name := range []string{"spec", "home"} {
		if err := os.Mkdir(filepath.Join(p.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.dir, "spec", "k"), []byte("kernel"), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *realProgram) write(text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, "spec", "main.vmctl.hcl"), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// run runs vmctl, demands an exit code, and returns the output.
func (p *realProgram) run(code int, args ...string) string {
	p.t.Helper()
	cmd := exec.Command("vmctl", args...)
	cmd.Dir = filepath.Join(p.dir, "spec")
	cmd.Env = []string{"HOME=" + filepath.Join(p.dir, "home"), "VMCTL_DATA_DIR=" + filepath.Join(p.dir, "data"), "PATH=" + os.Getenv("PATH")}
	var out, diagnostics bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("vmctl %s: exit code %d, want %d\n%s%s\n%s", strings.Join(args, " "), got, code, out.String(), diagnostics.String(), p.edit)
	}
	p.last = out.String()
	return p.last
}

func (p *realProgram) allowing(args ...string) []string {
	for _, a := range p.addresses {
		args = append(args, "--allow-replace="+a)
	}
	return args
}

// plan returns the addresses of the blocked changes, and the number of steps.
func (p *realProgram) plan() (blocked []string, steps int) {
	p.t.Helper()
	var plan struct {
		Changes []struct {
			Address string
			Blocked *json.RawMessage
		}
		Steps []json.RawMessage
	}
	text := p.run(0, p.allowing("plan", "--json")...)
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		p.t.Fatalf("%v:\n%s", err, text)
	}
	for _, c := range plan.Changes {
		if c.Blocked != nil && string(*c.Blocked) != "null" {
			blocked = append(blocked, c.Address)
		}
	}
	return blocked, len(plan.Steps)
}

func (p *realProgram) apply(excluded []string) {
	p.t.Helper()
	args := p.allowing("apply", "--auto-approve")
	for _, a := range excluded {
		args = append(args, fmt.Sprintf("--exclude=%s", a))
	}
	p.run(0, args...)
}
