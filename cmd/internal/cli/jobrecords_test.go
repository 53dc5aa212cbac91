package cli_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

// records returns the store of the jobs of a house.
func (h *house) records() job.Store {
	return job.Store{Dir: filepath.Join(h.data(), "jobs"), Owner: lockfile.Owner{PID: os.Getpid()}}
}

// record writes the record of a job that has come to a status in the ways that there are.
func (h *house) record(id job.ID, status job.Status, change func(*job.Record)) {
	h.t.Helper()
	s := h.records()
	if err := os.MkdirAll(h.data(), 0o700); err != nil {
		h.t.Fatal(err)
	}
	_, err := s.Create(job.Record{ID: id, Command: []string{"true"}, Dir: "/src", Created: noon()})
	way := []job.Status{job.Starting, job.Running, status}
	switch status {
	case job.Queued:
		way = nil
	case job.Starting:
		way = way[:1]
	case job.Running:
		way = way[:2]
	case job.Completed, job.Failed, job.Cancelled, job.Stale:
	}
	for _, next := range way {
		if err == nil {
			_, err = s.Update(h.t.Context(), id, func(r *job.Record) error { r.Status = next; return nil })
		}
	}
	if err == nil && change != nil && !status.IsTerminal() {
		_, err = s.Update(h.t.Context(), id, func(r *job.Record) error { change(r); return nil })
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// row J48
func TestJobListHidesWhatIsQueued(t *testing.T) {
	h := newHouse(t, withID)
	var shown []string
	for _, s := range job.Statuses() {
		h.record(job.ID("j-"+s), s, nil)
		if s != job.Queued {
			shown = append(shown, "j-"+string(s))
		}
	}
	h.run("job", "status").exits(0).says(shown...).says("cancelled", "stale").silent("j-queued")
	h.run("job", "list").exits(0).says(shown...).silent("j-queued")
	h.run("job", "status", "--all").exits(0).says(append(shown, "j-queued")...)
	h.run("job", "status", "j-queued").exits(0).says("queued")
}

// A cancel answers with an outcome in JSON and in words, and with its exit code. What asks a process that lives to end is
// tested on real ones: signaled and signal_failed.
//
// row J20, of all outcomes but signaled and signal_failed; row J22, of the command
func TestCancelAnswers(t *testing.T) {
	me, err := process.Host{}.Capture(t.Context(), os.Getpid())
	if err != nil {
		t.Fatal("processes cannot be recognised here: ", err)
	}
	as := func(change func(*process.Identity)) *process.Identity {
		id := me
		change(&id)
		return &id
	}
	reused := as(func(id *process.Identity) { id.StartTime++ })
	restarted := as(func(id *process.Identity) { id.BootID = "another" })
	elsewhere := as(func(id *process.Identity) { id.Host = "elsewhere" })
	halved := as(func(id *process.Identity) { id.StartTime = 0 })
	for _, c := range []struct {
		outcome string
		id      string
		prepare func(h *house)
		code    int
		says    string
	}{
		{outcome: "cancel_pending", prepare: func(h *house) { h.record("j-0", job.Queued, nil) }, code: 0, says: "It is cancelled"},
		{outcome: "already_terminal", prepare: func(h *house) { h.record("j-0", job.Completed, nil) }, code: 0, says: "It is completed"},
		{outcome: "already_dead", prepare: func(h *house) {
			h.record("j-0", job.Running, func(r *job.Record) { r.Worker, r.Process = restarted, restarted })
		}, code: 0, says: "It is cancelled"},
		{outcome: "stale_pid", prepare: func(h *house) {
			h.record("j-0", job.Running, func(r *job.Record) { r.Worker, r.Process = reused, reused })
		}, code: 6, says: "vmctl job status j-0"},
		{outcome: "unverifiable", prepare: func(h *house) {
			h.record("j-0", job.Running, func(r *job.Record) { r.Worker, r.Process = elsewhere, elsewhere })
		}, code: 6, says: "look there"},
		{outcome: "no_pid_info", prepare: func(h *house) {
			h.record("j-0", job.Running, func(r *job.Record) { r.Worker = halved })
		}, code: 6, says: "which process runs it"},
		{outcome: "cancel_failed", prepare: func(h *house) {
			h.record("j-0", job.Queued, nil)
			if err := os.MkdirAll(h.records().Path("j-0", "lock/in-the-way"), 0o700); err != nil {
				h.t.Fatal(err)
			}
		}, code: 1, says: "vmctl job status j-0"},
		{outcome: "bad_state", prepare: func(h *house) {
			h.record("j-0", job.Running, nil)
			path := h.records().Path("j-0", "record.json")
			text, err := os.ReadFile(path)
			if err := errors.Join(err, os.WriteFile(path, []byte(strings.Replace(string(text), `"running"`, `"weird"`, 1)), 0o600)); err != nil {
				h.t.Fatal(err)
			}
		}, code: 1, says: "vmctl leaves it as it is"},
		{outcome: "not_found", prepare: func(h *house) { h.record("j-other", job.Queued, nil) }, code: 3, says: "vmctl job list --all"},
		{outcome: "bad_args", id: "../x", prepare: func(h *house) { h.record("j-other", job.Queued, nil) }, code: 3, says: "small letters"},
	} {
		for _, form := range []string{"text", "json"} {
			t.Run(c.outcome+"/"+form, func(t *testing.T) {
				h := newHouse(t, withID)
				c.prepare(h)
				args := []string{"job", "cancel"}
				if form == "json" {
					args = append(args, "--json")
				}
				id := c.id
				if id == "" {
					id = "j-0"
				}
				e := h.run(append(args, id)...).exits(c.code)
				if form == "text" {
					if !strings.Contains(e.stdout+e.stderr, c.says) {
						t.Errorf("it does not say %q:\n%s%s", c.says, e.stdout, e.stderr)
					}
					return
				}
				var doc struct {
					Outcome string `json:"outcome"`
					Error   struct {
						Code string `json:"code"`
					} `json:"error"`
				}
				if err := json.Unmarshal([]byte(e.stdout), &doc); err != nil || doc.Outcome+doc.Error.Code != c.outcome {
					t.Errorf("outcome %q: %v, want %q:\n%s", doc.Outcome+doc.Error.Code, err, c.outcome, e.stdout)
				}
			})
		}
	}
}

// A job that is not launched because another vmctl starts one of its block says so by its code.
//
// row J06, of a job that is not launched
func TestAJobIsNotLaunchedForALock(t *testing.T) {
	h := newHouse(t, withID)
	h.program = "/no/vmctl"
	h.record("j-first", job.Running, func(r *job.Record) {
		r.Agent, r.Block, r.Dir, r.Session, r.Command = "claude", "job.review", h.dir, "s-1", []string{"claude"}
		r.Containment, r.Scope = "none", "working-tree"
	})
	s := h.records()
	if _, err := s.Update(t.Context(), "j-first", func(r *job.Record) error { r.Status = job.Completed; return nil }); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	owner := lockfile.Owner{PID: os.Getpid(), Host: host, Command: "another vmctl"}
	lock, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: filepath.Join(s.Dir, "start.lock"), Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	h.run("job", "continue", "j-first", "--json").exits(1).says(`"code": "locked"`, "held by another vmctl", "vmctl job run job.review runs it, once the cause is gone")
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	h.run("job", "continue", "j-first", "--json").exits(1).says(`"code": "not_launched"`, "/no/vmctl")
}

// A job of an earlier version, whose record says nothing of containment, is continued without.
func TestAnOldRecordIsContinued(t *testing.T) {
	h := newHouse(t, withID)
	h.program = "/no/vmctl"
	h.record("j-old", job.Running, func(r *job.Record) { r.Agent, r.Dir, r.Session, r.Command = "claude", h.dir, "s-1", []string{"claude"} })
	if _, err := h.records().Update(t.Context(), "j-old", func(r *job.Record) error { r.Status = job.Completed; return nil }); err != nil {
		t.Fatal(err)
	}
	h.run("job", "continue", "j-old", "--json").exits(1).says(`"code": "not_launched"`, "/no/vmctl")
}

// A job that cannot run in a copy is refused before it starts.
func TestACopyThatCannotBeMadeIsRefused(t *testing.T) {
	h := newHouse(t, withID)
	h.run("job", "run", "--in-dir", ".", "--containment=worktree", "--", "true").exits(3).warns("the folder is not under git: leave it out, or use a repository")
	if err := os.Mkdir(filepath.Join(h.dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.run("job", "run", "--in-dir", ".", "--containment=worktree", "--scope=branch-diff", "--", "true").exits(3).
		warns("the scope branch-diff compares with the commit that the branch of a workspace began at: run it with --in, or use another scope")
	if all, _, err := h.records().List(); err != nil || len(all) > 0 {
		t.Errorf("there are %d records: %v", len(all), err)
	}
}

// The copy of a job that could not be removed leaked.
func TestLeaksListsCopiesThatStay(t *testing.T) {
	h := newHouse(t, withID)
	h.run("leaks").exits(0).says("none")
	h.record("j-left", job.Running, func(r *job.Record) { r.LeftCopy = &job.LeftCopy{Path: "/d/copy", Reason: "it cannot be removed: busy"} })
	h.run("leaks").exits(2).says("leftover", "the copy of job j-left", "its copy stays in /d/copy: it cannot be removed: busy", "next: try again: vmctl apply")
}
