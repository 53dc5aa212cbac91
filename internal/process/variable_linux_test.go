package process_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"vmctl/internal/process"
)

func TestWithVariable(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("there is no sleep here")
	}
	host := process.Host{}
	var children []*process.Child
	for _, env := range []string{"PROCESS_TEST_VARIABLE=one two", "PROCESS_TEST_VARIABLE=one"} {
		child, err := host.Start(process.Command{Path: sleep, Args: []string{"3600"}, Env: []string{"A=b", env, "C=d"}})
		if err != nil {
			t.Fatal(err)
		}
		children = append(children, child)
		t.Cleanup(func() {
			limit, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
			defer cancel()
			_, _ = child.Force(), child.Wait(limit) //nolint:errcheck // it may have ended
		})
		if _, err := child.Capture(t.Context()); err != nil { // it runs its program by then
			t.Fatal(err)
		}
	}
	found, err := host.WithVariable(t.Context(), "PROCESS_TEST_VARIABLE=one")
	if err != nil || len(found) != 1 || found[0].PID != children[1].PID() {
		t.Fatalf("found %v, %v; want pid %d alone", found, err, children[1].PID())
	}
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := children[1].Force(); err != nil {
		t.Fatal(err)
	}
	if _, ended := process.Status(children[1].Wait(limit)); !ended {
		t.Fatal("it did not end within a minute")
	}
	if found, err := host.WithVariable(t.Context(), "PROCESS_TEST_VARIABLE=one"); err != nil || len(found) > 0 {
		t.Errorf("after its end found %v, %v", found, err)
	}
}
