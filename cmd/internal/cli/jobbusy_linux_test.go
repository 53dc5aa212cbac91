package cli_test

import (
	"os"
	"testing"

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
	h.record("j-0", job.Queued, func(r *job.Record) { r.Launcher, r.Agent = &gone, job.Plain })
	h.record("j-1", job.Queued, func(r *job.Record) { r.Launcher, r.Block = &gone, "job.review" })
	h.run("apply", "--auto-approve").exits(0).warns("no worker has taken it: it never ran; vmctl job run --in-dir /src -- true", "vmctl job run job.review")
}
