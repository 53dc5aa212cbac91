package cli_test

import (
	"os"
	"testing"
	"time"

	"vmctl/internal/process"
	"vmctl/providers/job"
)

// A job that was not launched has no session to continue: the next apply says how to run it again.
func TestJobThatWasNotLaunchedIsRunAgain(t *testing.T) {
	gone, err := process.Host{}.Capture(t.Context(), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	gone.BootID = "another"
	h := newHouse(t, withID)
	h.record("j-0", job.Queued, func(r *job.Record) {
		r.Launcher, r.Agent = &gone, job.Plain
		r.Timeout, r.IdleTimeout, r.Grace = job.Duration(2*time.Hour), job.Duration(30*time.Minute), job.Duration(10*time.Second)
	})
	h.record("j-2", job.Queued, func(r *job.Record) {
		r.Launcher, r.Agent, r.Workspace, r.PromptHead = &gone, job.Plain, "workspace.w", "do it"
		r.Containment, r.Scope, r.Timeout, r.Grace = job.InCopy, job.Head, job.Duration(time.Minute), job.Duration(10*time.Second)
	})
	h.record("j-1", job.Queued, func(r *job.Record) {
		r.Launcher, r.Block, r.Asked = &gone, "job.review", job.Asked{Pass: []string{"A", "B"}, Set: []string{"C"}, StripProxy: true}
	})
	h.run("apply", "--auto-approve").exits(0).warns("no worker has taken it: it never ran; vmctl job run --in-dir /src -- true", "vmctl job run --pass-env=A --pass-env=B --set-env=C=VALUE --strip-proxy job.review",
		"vmctl job run --containment=worktree --scope=head --timeout=1m0s --idle-timeout=0s --prompt=FILE --in workspace.w -- true")
}
