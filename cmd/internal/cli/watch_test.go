package cli_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vmctl/providers"
)

// A panic while facts are read makes them unknown, and the command ends: it asks once, and
// writes a record that a report needs. A plan that rests on unknown facts is refused, with exit
// code 6; a step that panics has failed, with exit code 1, and is tried once.
//
// row E15
func TestAPanicEndsTheRun(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	h.acted("define vm.dev", "start vm.dev", "wait_ssh vm.dev")
	report := []string{
		`level=ERROR msg="a provider panicked" doing="ask provider.libvirt.default"`, "version=0.1.0 go=go1.26 platform=linux/amd64",
		`stack="goroutine `, `cli_test.host.Observe(`,
	}
	const shown = "this is a mistake in vmctl, please report it: the provider panicked at cli/memory_test.go:"
	h.replace("256MiB", "512MiB")
	h.memory.panics = "observe"
	for _, command := range [][]string{{"plan"}, {"apply", "--auto-approve"}, {"destroy", "--auto-approve"}, {"plan", "--log-level=debug"}} {
		h.memory.observed = 0
		e := h.run(command...).exits(6).says("! unknown vm.dev: ", shown).warns(report...)
		if n := strings.Count(e.stderr, "a provider panicked"); n != 1 || h.memory.observed != 1 {
			t.Errorf("vmctl %s: %d records, and the provider was asked %d times", e.args, n, h.memory.observed)
		}
	}
	h.acted()
	h.memory.panics = "stop vm.dev"
	e := h.run("apply", "--auto-approve").exits(1).warns("vm.dev stop: "+shown, `doing="stop vm.dev"`, `stack="goroutine `)
	if n := strings.Count(e.stdout, "vm.dev: stopping"); n != 1 {
		t.Errorf("the step was tried %d times:\n%s", n, e.stdout)
	}
	h.acted()
}

// A message of 1 MiB is shown and stored with a marker in its middle; the log has the whole text.
//
// row E54
func TestALongMessageIsCut(t *testing.T) {
	h := newHouse(t, withID+small+"vm \"slow\" {}\n")
	long := func(what string) string { return what + strings.Repeat(" and so on", 1<<20/10) + " end of " + what }
	fail := func() {
		h.memory.fail["start vm.dev"] = &providers.Problem{
			Outcome: providers.Failed, Code: "libvirt", Err: errors.New(long("the error")), Seen: []string{long("an observation")},
		}
	}
	const marker = " … [10"
	cut := func(e ending) {
		t.Helper()
		if all := e.stdout + e.stderr; !strings.Contains(all, marker) || len(all) > 64<<10 {
			t.Errorf("vmctl %s wrote %d bytes; with a marker: %t", e.args, len(all), strings.Contains(all, marker))
		}
	}
	logged := func(e ending, whole ...string) {
		t.Helper()
		for _, text := range whole {
			if !strings.Contains(e.stderr, `msg="a message that was cut"`) || !strings.Contains(e.stderr, text) {
				t.Errorf("vmctl %s: its log lacks the whole text that ends with %q", e.args, text[len(text)-20:])
			}
		}
	}
	fail()
	hold, done := make(chan struct{}), make(chan ending)
	h.memory.hold["start vm.slow"] = hold // the journal lasts as long as the run
	go func() { done <- h.run("apply", "--auto-approve") }()
	stored := false
	for range 1000 {
		if stored = h.stores(marker, "end of the error", "end of an observation"); stored {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	close(hold)
	cut((<-done).exits(1).warns("end of the error", "end of an observation"))
	if !stored {
		t.Error("the journal lacks the message with its marker")
	}

	fail()
	logged(h.run("apply", "--auto-approve", "--log-level=debug").exits(1), long("the error"), long("an observation"))
	h.memory.unknown["demo.dev"] = long("a reason")
	cut(h.run("plan").exits(6))
	logged(h.run("plan", "--log-level=debug").exits(6), long("a reason"))
}

// stores reports whether a file of the data directory has all of these texts. The file must not
// be long.
func (h *house) stores(texts ...string) bool {
	found := false
	_ = filepath.WalkDir(h.data(), func(path string, d fs.DirEntry, err error) error { //nolint:errcheck // a file may be gone by now
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // see above
		}
		content, err := os.ReadFile(path)
		missing := slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(string(content), text) })
		found = found || err == nil && !missing && len(content) < 64<<10
		return nil
	})
	return found
}
