package process_test

import (
	"context"
	"testing"

	"vmctl/internal/process"
)

// world is where the conformance table runs. Its processes play the roles of
// main_test.go, really or as if.
type world interface {
	Host() process.Host
	// Run returns once the process, its children, and theirs can be identified.
	Run(t *testing.T, as string) *actor
}

// actor is a process of a world, whose parent is the test.
type actor struct {
	process.Identity
	Below []process.Identity // its children and theirs, as they came to be
	Heard func()             // returns once a late one was requested to end
	LetGo func()             // a late one may end
	End   func()             // it ends by itself, and is not collected
	// Collect waits for its end, and leaves nothing of it.
	Collect func()
}

// over is a context that has ended: waiting with it is only a look.
func over(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func verify(t *testing.T, host process.Host, id process.Identity, want process.Verdict) {
	t.Helper()
	if got, reason := host.Verify(id); got != want {
		t.Errorf("%s (pid %d): %s, want %s: %s", id.Argv0, id.PID, got, want, reason)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
