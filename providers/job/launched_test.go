package job_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/job"
	"vmctl/spec"
)

// A job of which no worker was started has not run, however far its start came: the step fails, the record says so, and the
// next apply starts it.
func TestAJobThatWasNotLaunchedHasNotRun(t *testing.T) {
	s := job.Store{Dir: t.TempDir()}
	observer := job.Observer{Processes: process.Host{}, Now: time.Now()}
	in := "prompt/in-the-way"
	var failed []job.ID
	p := open(t, s, func(ctx context.Context, run job.BlockRun) (job.Record, error) {
		id := job.ID(fmt.Sprintf("j-%d", len(failed)))
		r, err := s.CreateOnly(ctx, job.Record{ID: id, Block: run.Block.String(), Digest: run.Digest, Command: run.Command, Created: time.Now()}, observer)
		if err != nil {
			t.Fatal(err)
		}
		failed = append(failed, id)
		if in != "" {
			if err := os.MkdirAll(s.Path(id, in), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if r, err = s.HandOff(ctx, r, job.Handoff{Prompt: []byte("do it"), Environ: []string{"A=b"}}, time.Now()); err != nil {
			return r, err
		}
		return s.Start(ctx, id, job.Launch{Program: filepath.Join(s.Dir, "no-such-program")}, time.Now)
	})
	steps, err := p.Steps(providers.Change{Address: review, Kind: spec.Job, Action: providers.Create, ID: "chosen", Want: want(nil), Policy: policy(60)})
	if err != nil {
		t.Fatal(err)
	}
	for _, in = range []string{"prompt/in-the-way", "environ/in-the-way", ""} {
		_, err := p.Do(t.Context(), providers.Work{Step: steps[0], Want: want(nil), Policy: policy(60)}, nil)
		if err == nil {
			t.Fatalf("with %q it started", in)
		}
		id := failed[len(failed)-1]
		if r, err := s.Read(id); err != nil || r.Status != job.Failed || r.ErrorCode != job.NotLaunched || r.Reason == "" {
			t.Errorf("with %q in the way it is %s (%s): %s, %v; want failed, not launched", in, r.Status, r.ErrorCode, r.Reason, err)
		}
		inv, err := p.Observe(t.Context(), providers.Query{Known: []providers.Known{{Address: review, Want: want(nil)}}})
		if err != nil || len(inv.Objects) != 0 {
			t.Errorf("with %q in the way it counts as run: %+v, %v", in, inv.Objects, err)
		}
	}
	if len(failed) != 3 {
		t.Errorf("it was started %d times, want 3", len(failed))
	}
}

// A start that is refused since nobody can tell whether another job runs has done nothing.
func TestAStartThatIsRefused(t *testing.T) {
	s := job.Store{Dir: t.TempDir()}
	p := open(t, s, func(context.Context, job.BlockRun) (job.Record, error) {
		return job.Record{}, &job.UnknownJobError{Block: review.String(), Folder: s.Path("j-0", ""), Err: errors.New("it is cut off")}
	})
	steps, err := p.Steps(providers.Change{Address: review, Kind: spec.Job, Action: providers.Create, ID: "chosen", Want: want(nil), Policy: policy(60)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Do(t.Context(), providers.Work{Step: steps[0], Want: want(nil), Policy: policy(60)}, nil)
	var problem *providers.Problem
	if !errors.As(err, &problem) || problem.Outcome != providers.Unsafe || problem.Code != "job_unknown" {
		t.Errorf("%+v, %v; want it refused", problem, err)
	}
}

// A record that cannot be written is none: its folder is gone too.
func TestARecordThatCannotBeWritten(t *testing.T) {
	s := job.Store{Dir: t.TempDir()}
	r, err := s.Create(job.Record{ID: "j-0", Created: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}) // JSON has no such year
	if err == nil || r.Revision != 0 {
		t.Errorf("revision %d, %v", r.Revision, err)
	}
	if _, err := os.Lstat(s.Path("j-0", "")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
}
