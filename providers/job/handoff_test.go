package job_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

// However a job ends before its worker took the prompt and the variables, they do not stay.
//
// row J55, of what is handed to a worker
func TestHandoffEndsWithTheJob(t *testing.T) {
	worker := process.Identity{PID: 7}
	begin := func(r *job.Record) error { return job.Begin(r, worker) }
	for name, changes := range map[string][]func(*job.Record) error{
		"cancelled while it is queued": {func(r *job.Record) error { return job.Ask(r, job.Cancel{By: "ann", At: noon}) }},
		"not entered":                  {func(r *job.Record) error { return job.Abandon(r, job.NotEntered, "busy", noon) }},
		"killed before it took them":   {begin, func(r *job.Record) error { return job.Close(r, "its worker is gone", noon) }},
		"failed before it took them":   {begin, func(r *job.Record) error { return job.Finish(r, worker, job.Outcome{ErrorCode: job.SpawnFailed}, noon) }},
	} {
		s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
		r, err := s.Create(job.Record{ID: "j", Created: noon})
		if err == nil {
			_, err = s.HandOff(t.Context(), r, job.Handoff{Prompt: []byte("canary"), Environ: []string{"TOKEN=canary"}}, noon)
		}
		for _, change := range changes {
			if err == nil {
				_, err = os.Stat(s.Path("j", "prompt"))
			}
			if err == nil {
				r, err = s.Update(t.Context(), "j", change)
			}
		}
		if err != nil || !r.Status.IsTerminal() || len(r.Warnings) > 0 {
			t.Errorf("%s: it is %s, %q, %v", name, r.Status, r.Warnings, err)
		}
		for _, file := range []string{"prompt", "environ"} {
			if _, err := os.Lstat(s.Path("j", file)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: its %s is there: %v", name, file, err)
			}
		}
	}
}

// What a killed writer of the input has left ends with the job, and what is written once it has ended does not stay either.
func TestHandoffOfAJobThatHasEnded(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	r, err := s.Create(job.Record{ID: "j", Created: noon})
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.Path("j", ""), map[string]string{".prompt.12.tmp": "canary", ".environ.34.tmp": "canary"})
	if _, err = s.Update(t.Context(), "j", func(r *job.Record) error { return job.Ask(r, job.Cancel{By: "ann", At: noon}) }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.HandOff(t.Context(), r, job.Handoff{Prompt: []byte("canary"), Environ: []string{"TOKEN=canary"}}, noon); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(s.Path("j", ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "record.json" && e.Name() != "lock" {
			t.Errorf("%s is there", e.Name())
		}
	}
}

// A launch that fails leaves nothing either.
func TestHandoffOfAFailedLaunch(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	r, err := s.Create(job.Record{ID: "j", Created: noon})
	if err == nil {
		_, err = s.HandOff(t.Context(), r, job.Handoff{Prompt: []byte("canary")}, noon)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.Start(t.Context(), "j", job.Launch{Program: s.Path("j", "no-such-program")}, time.Now); err == nil || r.ErrorCode != job.NotLaunched {
		t.Errorf("it started: %s, %v", r.ErrorCode, err)
	}
	if _, err := os.Lstat(s.Path("j", "prompt")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its prompt is there: %v", err)
	}
}

// Input that cannot be removed ends no job otherwise than it did: its record has a warning.
func TestHandoffThatStays(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	if _, err := s.Create(job.Record{ID: "j", Created: noon}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.Path("j", "prompt/in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := s.Update(t.Context(), "j", func(r *job.Record) error { return job.Ask(r, job.Cancel{By: "ann", At: noon}) })
	if err != nil || r.Status != job.Cancelled || len(r.Warnings) != 1 {
		t.Errorf("it is %s with the warnings %q: %v", r.Status, r.Warnings, err)
	}
}
