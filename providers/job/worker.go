package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"vmctl/internal/clock"
	"vmctl/internal/process"
)

// Worker runs one job and watches it: a process of its own, in a session of its own.
type Worker struct {
	Store     Store
	Processes process.Host
	ID        ID
	Environ   []string // of the command, all of it but TMPDIR
	Now       func() time.Time
	// Enter keeps others from taking down what the job runs in, until leave is called; nil: nothing
	// has to be kept.
	Enter func(context.Context, Record) (leave func() error, err error)
	// Backoff has the waits before an agent is started again that its provider refuses for its rate; nil: it is not.
	Backoff []time.Duration
	unkept  map[string]*unkept // the outputs that cannot be kept, by name
	// Ready is called once: when the command runs, or waits for its turn or a copy of its workspace (nil), or with why it does
	// not run.
	Ready func(error)
}

const (
	tick       = 200 * time.Millisecond // between two looks at the output and the intent
	forceWait  = 10 * time.Second
	settleWait = 10 * time.Second // for the program of the command
	sweeps     = 20
)

// Run runs the job to its end, and writes that as the last thing. An ended ctx is the request to end
// the job. The error says why the record could not be written.
func (w *Worker) Run(ctx context.Context) error {
	own := context.WithoutCancel(ctx)
	leave, err := w.enter(own)
	if err != nil {
		w.Ready(err)
		return err
	}
	me, err := w.Processes.Capture(own, os.Getpid())
	if err == nil {
		err = process.AdoptOrphans()
	}
	if err == nil {
		err = turn{store: w.Store, processes: w.Processes, id: w.ID, me: me, now: w.Now, ready: &w.Ready}.await(ctx)
	}
	var r Record
	if err == nil {
		r, err = w.Store.Update(own, w.ID, func(r *Record) error { return Begin(r, me) })
	}
	if err != nil {
		w.Ready(err)
		return errors.Join(err, leave())
	}
	seen := w.lookBefore(own, r.Dir)
	private, o := w.contain(ctx, &r)
	var started *process.Child
	again := w.retryOf(r, me)
	if o.ErrorCode == "" {
		var failed Outcome
		started, failed = w.start(ctx, r, me)
		failed.Warnings = append(o.Warnings, failed.Warnings...)
		o = failed
	}
	if started != nil {
		w.Ready(nil)
		before := o.Warnings
		o = again.run(ctx, w.watch(ctx, r, started))
		o.Warnings = append(before, o.Warnings...)
		if private != nil {
			_, _ = w.Store.Update(own, w.ID, func(r *Record) error { return Keeps(r, me) }) //nolint:errcheck // it decides nothing: the end counts
		}
		if private != nil {
			seen.intoCopied(own, &o)
		} else {
			seen.into(own, &o)
		}
	} else {
		w.Ready(errors.New(o.Reason))
	}
	if o.ErrorCode == StopFailed { // what lives may write on
		o.copy.err = errors.New(o.Reason)
	} else {
		o.copy = w.Store.endCopy(own, r)
	}
	// Whoever reads that the job has ended may take down what it ran in at once.
	if err := leave(); err != nil {
		o.Warnings = append(o.Warnings, err.Error())
	}
	return w.finish(own, r, me, o)
}

// contain makes the copy that a job runs in if it is contained, and leads r there. nil: it needs none, or the outcome says
// why there is none.
func (w *Worker) contain(ctx context.Context, r *Record) (*workCopy, Outcome) {
	if r.Containment != InCopy {
		return nil, Outcome{}
	}
	w.Ready(nil) // nobody waits for a copy of a large workspace: the record says who makes it
	w.Ready = func(error) {}
	ctx, done := w.Store.untilCancelled(ctx, w.ID)
	defer done()
	private, warnings, err := w.makeCopy(ctx, *r)
	if err != nil {
		return nil, Outcome{ErrorCode: CodeOf(err, CopyFailed), Reason: err.Error(), Requested: ctx.Err() != nil}
	}
	r.Dir = private.work()
	return private, Outcome{Warnings: warnings}
}

// untilCancelled returns a context that ends, too, when the end of a job is asked for in its record. The caller calls done.
func (s Store) untilCancelled(ctx context.Context, id ID) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	looks := make(chan struct{})
	go func() {
		defer close(looks)
		for ctx.Err() == nil {
			if r, err := s.Read(id); err == nil && r.Cancel != nil {
				cancel()
			}
			clock.Pause(ctx, tick)
		}
	}()
	return ctx, func() { cancel(); <-looks }
}

// enter keeps others from taking down what the job runs in. If that fails, the job has ended.
func (w *Worker) enter(ctx context.Context) (leave func() error, err error) {
	if w.Enter == nil {
		return func() error { return nil }, nil
	}
	r, err := w.Store.Read(w.ID)
	if err != nil {
		return nil, err
	}
	leave, err = w.Enter(ctx, r)
	if err == nil {
		return leave, nil
	}
	_, failed := w.Store.Update(ctx, w.ID, func(r *Record) error { return Abandon(r, NotEntered, err.Error(), w.Now()) })
	return nil, errors.Join(err, failed)
}

// finish writes how the run ended. If that fails the record gets at least the reason.
func (w *Worker) finish(ctx context.Context, r Record, me process.Identity, o Outcome) error {
	w.drained(ctx)
	return w.Store.conclude(ctx, w.ID, me, o.with(w.reportFrom(ctx, r, 0)), w.Now)
}

// start starts the command, and records its process. nil: it did not start, and the outcome says why. It does not start once
// its end is asked for, also during the look at its folder.
func (w *Worker) start(asked context.Context, r Record, me process.Identity) (*process.Child, Outcome) {
	ctx := context.WithoutCancel(asked)
	if now, err := w.Store.Read(w.ID); asked.Err() != nil || err == nil && now.Cancel != nil {
		return nil, Outcome{Requested: true, Reason: ErrCancelled.Error()}
	}
	stdin, err := w.takePrompt()
	if err != nil {
		return nil, Outcome{ErrorCode: PromptMissing, Reason: err.Error()}
	}
	defer stdin.Close() //nolint:errcheck // the child has its own
	child, lost, err := w.spawn(r, stdin)
	if err != nil {
		return nil, Outcome{ErrorCode: CodeOf(err, SpawnFailed), Reason: err.Error()}
	}
	id, err := settle(ctx, child)
	if err != nil {
		return nil, w.give(ctx, child, SpawnFailed, err)
	}
	_, err = w.Store.Update(ctx, w.ID, func(r *Record) error {
		r.Warnings = append(r.Warnings, lost...)
		return Run(r, me, id, w.Now())
	})
	if err != nil {
		return nil, w.give(ctx, child, CodeOf(err, FinalizationFailed), err)
	}
	return child, Outcome{}
}

// give ends a command that cannot be watched.
func (w *Worker) give(ctx context.Context, child *process.Child, code ErrorCode, cause error) Outcome {
	o := Outcome{ErrorCode: code, Reason: cause.Error()}
	limit, cancel := context.WithTimeout(ctx, forceWait)
	defer cancel()
	if err := errors.Join(child.Force(), child.Wait(limit)); err != nil {
		if _, ended := process.Status(err); !ended {
			o.Warnings = append(o.Warnings, err.Error())
		}
	}
	w.sweep(ctx, Record{}, &o) // nobody watches: what lives is killed
	return o
}

// takePrompt opens the prompt, and removes its file: only the command can read it from then on.
func (w *Worker) takePrompt() (*os.File, error) {
	path := w.Store.Path(w.ID, promptFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("read the prompt: its file is gone")
	}
	if err != nil {
		return nil, fmt.Errorf("read the prompt: %w", err)
	}
	return f, errors.Join(os.Remove(path))
}

// spawn starts the command. lost says which of its output is not kept.
func (w *Worker) spawn(r Record, stdin *os.File) (child *process.Child, lost []string, err error) {
	temp := w.Store.Path(w.ID, tempFolder)
	if err := os.MkdirAll(temp, 0o700); err != nil {
		return nil, nil, err
	}
	environ := append(append([]string{}, w.Environ...), "TMPDIR="+temp, Marker+"="+string(w.ID))
	if r.Containment == InCopy { // a repository around the copy is none of the job's
		environ = append(environ, "GIT_CEILING_DIRECTORIES="+w.Store.Path(w.ID, copyFolder))
	}
	path, err := process.LookPath(r.Command[0], r.Dir, environ)
	if err != nil {
		return nil, nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, nil, err
	}
	var out [2]*os.File
	for i, name := range []string{"stdout", "stderr"} {
		delete(w.unkept, name)
		f, err := w.output(name)
		if err != nil { // it decides nothing
			lost = append(lost, "its "+name+" is not kept: "+err.Error())
			f, err = w.drain(r, name)
		}
		if err != nil {
			return nil, nil, err
		}
		defer f.Close() //nolint:errcheck // the child has its own
		out[i] = f
	}
	child, err = w.Processes.Start(process.Command{
		Path: path, Args: r.Command[1:], Env: environ, Dir: r.Dir, Stdin: stdin, Stdout: out[0], Stderr: out[1],
	})
	return child, lost, err
}

func (w *Worker) output(name string) (*os.File, error) {
	return os.OpenFile(w.Store.Path(w.ID, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// watch waits for the end of the command, and ends it when its time is over or its end is asked for.
func (w *Worker) watch(ctx context.Context, r Record, child *process.Child) Outcome {
	own := context.WithoutCancel(ctx)
	begun := w.Now()
	grown, size := begun, int64(0)
	for {
		look, cancel := context.WithTimeout(ctx, tick)
		err := child.Wait(look)
		cancel()
		if status, ended := process.Status(err); ended {
			o := Outcome{ExitCode: &status}
			w.sweep(own, r, &o)
			return o
		}
		now := w.Now()
		if n := w.written(); n != size {
			size, grown = n, now
		}
		switch {
		case ctx.Err() != nil:
			return w.stop(own, r, child, Outcome{Requested: true})
		case r.Timeout > 0 && now.Sub(begun) >= time.Duration(r.Timeout):
			return w.stop(own, r, child, Outcome{ErrorCode: TimedOut, Reason: "not done after " + time.Duration(r.Timeout).String()})
		case r.IdleTimeout > 0 && now.Sub(grown) >= time.Duration(r.IdleTimeout):
			return w.stop(own, r, child, Outcome{ErrorCode: IdleTimedOut, Reason: "no output for " + time.Duration(r.IdleTimeout).String()})
		}
		if seen, err := w.Store.Read(w.ID); err == nil && seen.Cancel != nil {
			return w.stop(own, r, child, Outcome{})
		}
	}
}

func (w *Worker) written() (n int64) {
	for _, name := range []string{"stdout", "stderr"} {
		if u := w.unkept[name]; u != nil {
			n += u.size.Load()
			continue
		}
		if info, err := os.Stat(w.Store.Path(w.ID, name)); err == nil {
			n += info.Size()
		}
	}
	return n
}

// stop requests the command and all its descendants to end, and forces them after the grace.
func (w *Worker) stop(ctx context.Context, r Record, child *process.Child, o Outcome) Outcome {
	all, err := w.Processes.Descendants()
	if err = errors.Join(err, process.Each(all, w.Processes.Request)); err != nil {
		o.Warnings = append(o.Warnings, err.Error())
	}
	grace, cancel := context.WithTimeout(ctx, time.Duration(r.Grace))
	err = child.Wait(grace)
	cancel()
	if _, ended := process.Status(err); !ended && !mayKill(r) {
		err = w.outlast(ctx, r, child)
	}
	if _, ended := process.Status(err); !ended {
		force, cancel := context.WithTimeout(ctx, forceWait)
		err = errors.Join(child.Force())
		if waited := child.Wait(force); err == nil {
			err = waited
		}
		cancel()
	}
	if status, ended := process.Status(err); ended {
		o.ExitCode = &status
	} else {
		o.ErrorCode, o.Reason = StopFailed, err.Error()
	}
	w.sweep(ctx, r, &o)
	return o
}

// outlast waits for the end of a command that was asked to end and may not be killed: as long as it takes, or until a cancel says
// that it may.
func (w *Worker) outlast(ctx context.Context, r Record, child *process.Child) error {
	w.resists(ctx, r, resistance(r))
	for {
		look, cancel := context.WithTimeout(ctx, tick)
		err := child.Wait(look)
		cancel()
		if _, ended := process.Status(err); ended || w.mayKillNow(r) {
			return err
		}
	}
}

func (w *Worker) resists(ctx context.Context, r Record, reason string) {
	_, _ = w.Store.Update(ctx, w.ID, func(now *Record) error { return Resists(now, *r.Worker, reason) }) //nolint:errcheck // it decides nothing: the end counts
}

// mayKillNow is mayKill by the record as it is now.
func (w *Worker) mayKillNow(r Record) bool {
	if mayKill(r) {
		return true
	}
	now, err := w.Store.Read(w.ID)
	return err == nil && mayKill(now)
}

// askLeft asks what a command left behind to end, and waits until nothing is left, or until a cancel says that it may be killed:
// then it reports true.
func (w *Worker) askLeft(ctx context.Context, r Record, o *Outcome) (mayKill bool) {
	asked, begun, told := map[int]process.Identity{}, w.Now(), time.Time{}
	for !w.mayKillNow(r) {
		all, err := w.Processes.Descendants()
		if len(all) == 0 {
			if err != nil {
				o.Warnings = append(o.Warnings, err.Error())
			}
			return false
		}
		lives := map[int]process.Identity{}
		for _, id := range all {
			if lives[id.PID] = id; asked[id.PID] != id {
				o.leaves(id)
				_ = w.Processes.Request(id) //nolint:errcheck // the next look tells whether it lives
			}
		}
		asked = lives
		if now := w.Now(); now.Sub(begun) >= time.Duration(r.Grace) && now.Sub(told) >= forceWait { // they may come and go at any rate
			told = now
			w.resists(ctx, r, "its command has ended, and what it left behind was asked to end and runs on: "+process.Words(all)+": it is not forced")
		}
		clock.Pause(ctx, tick)
	}
	return true
}

// leaves notes a process that a command left behind, once, and as many as a record names.
func (o *Outcome) leaves(id process.Identity) {
	name := "pid " + strconv.Itoa(id.PID) + " (" + filepath.Base(id.Argv0) + ")"
	if len(o.Leftovers) < mostLeft && !slices.Contains(o.Leftovers, name) {
		o.Leftovers = append(o.Leftovers, name)
	}
}

// sweep ends what the command left behind, until nothing is left.
func (w *Worker) sweep(ctx context.Context, r Record, o *Outcome) {
	if !w.askLeft(ctx, r, o) {
		return
	}
	for range sweeps {
		all, err := w.Processes.Descendants()
		if err != nil {
			o.Warnings = append(o.Warnings, err.Error())
		}
		if len(all) == 0 {
			return
		}
		for _, id := range all {
			o.leaves(id)
		}
		limit, cancel := context.WithTimeout(ctx, forceWait)
		err = process.Each(all, func(id process.Identity) error { _, err := w.Processes.Force(id); return err })
		err = errors.Join(err, w.Processes.Wait(limit, all...))
		cancel()
		if err != nil {
			o.Warnings = append(o.Warnings, err.Error())
			clock.Pause(ctx, tick)
		}
	}
	o.ErrorCode, o.Reason = StopFailed, "processes that it started do not end"
}
