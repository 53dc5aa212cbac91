package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"vmctl/internal/real"
)

// The tests of signals pass even if signals are ignored from the start, and vmctl itself
// still ignores the signals that it was started to ignore.
func TestSignalsThatAreIgnoredAtTheStart(t *testing.T) {
	real.Long(t)
	t.Parallel()
	tests := "^TestSignalsInterrupt$|^TestASignalThatIsIgnoredStaysIgnored$|^TestNoAnswerDoesNothing$|^TestScripts$/^interrupt_hang$"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `trap "" INT HUP TERM QUIT; exec "$0" "$@"`, self, "-test.run="+tests, "-test.v", "-test.timeout=5m")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"TestSignalsInterrupt", "TestASignalThatIsIgnoredStaysIgnored", "TestScripts/interrupt_hang"} {
		if !strings.Contains(string(out), "--- PASS: "+name+" ") {
			t.Errorf("%s did not run:\n%s", name, out)
		}
	}
}

// A program that hangs ends itself, and prints where it waits.
func TestWhatHangsSaysWhatItWaitsFor(t *testing.T) {
	real.Long(t)
	t.Parallel()
	s := newSite(t, strings.Replace(slowSpec, `"2s"`, `"1h"`, 1))
	cmd := s.vmctl("apply", "--auto-approve")
	cmd.Env = append(cmd.Env, lessPatience+"=3s")
	out := finish(t, cmd)
	if code := cmd.ProcessState.ExitCode(); code != hung {
		t.Errorf("exit code %d, want %d", code, hung)
	}
	for _, want := range []string{"vmctl apply --auto-approve hangs: it did not end within 3s. It waits here:", "fault.(*wrapper)"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}
