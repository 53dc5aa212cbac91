package job_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

// Of the jobs that continue each other, which have one session, none is continued while one of them has not ended, and no record
// is made.
//
// row J47, of the jobs with one session
func TestASessionInUseIsNotContinued(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	o := job.Observer{Processes: process.Host{}, Now: noon.Add(time.Minute)}
	for _, r := range []struct {
		id, parent job.ID
		status     job.Status
	}{
		{"j-first", "", job.Completed},
		{"j-second", "j-first", job.Completed},
		{"j-third", "j-second", job.Running},
		{"j-beside", "j-first", job.Completed},
		{"j-other", "", job.Completed},
		{"j-of-other", "j-other", job.Completed},
		{"j-new", "", job.Running},
	} {
		record(t, s, r.id, r.status, func(now *job.Record) { now.Parent = r.parent })
	}
	for id, inUse := range map[job.ID]bool{"j-first": true, "j-second": true, "j-beside": true, "j-other": false, "j-of-other": false} {
		want := ""
		if inUse {
			want = fmt.Sprintf("continue job %s: job j-third goes on with its session, and is running", id)
		}
		said := func(err error) string {
			if err == nil {
				return ""
			}
			return err.Error()
		}
		if got := said(s.Free(t.Context(), id, o)); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
		before, _, err := s.List()
		if err != nil {
			t.Fatal(err)
		}
		next := id + "-again"
		r, err := s.CreateOnly(t.Context(), job.Record{ID: next, Parent: id, Created: noon}, o)
		if got := said(err); got != want || (r.Revision == 0) != inUse {
			t.Errorf("%s: revision %d, %q, want %q", next, r.Revision, got, want)
		}
		after, _, err := s.List()
		if grown := len(after) > len(before); err != nil || grown == inUse {
			t.Errorf("%s: %d records became %d: %v", next, len(before), len(after), err)
		}
		if !inUse {
			if err := os.RemoveAll(s.Path(next, "")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.RemoveAll(s.Path("j-third", "")); err != nil {
		t.Fatal(err)
	}
	if err := s.Free(t.Context(), "j-first", o); err != nil {
		t.Error(err)
	}
	var inUse *job.SessionInUseError
	if err := s.Free(t.Context(), "j-new", o); !errors.As(err, &inUse) || inUse.By != "j-new" {
		t.Errorf("a job that runs: %v", err)
	}
}
