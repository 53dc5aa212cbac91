package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"vmctl/internal/clock"
	"vmctl/internal/process"
	"vmctl/providers"
)

// GuestWorker runs one job inside a guest and watches it: a process of this host. The job is a
// process of the guest, and outlives its worker: another one can take it up.
type GuestWorker struct {
	Store     Store
	Guest     providers.Guest // it finds the way into the VM anew if that was lost
	Processes process.Host
	ID        ID
	Environ   []string // of the command, besides those of the guest
	TakesUp   bool     // the job has begun, and its worker is gone
	Now       func() time.Time
	Ready     func(error) // as of Worker

	sizes   map[string]int64 // of the outputs, as far as they were seen
	unkept  map[string]error // why an output cannot be kept on this host, by its name
	ceiling string           // the folder of the copy that the job runs in: a repository around it is none of the job's; "": it runs in its workspace
	left    []string         // warnings about what is not in that copy
}

const (
	guestTick = 500 * time.Millisecond // between two looks
	callLimit = time.Minute            // for one call inside the guest
)

// Run runs the job to its end, and writes that as the last thing, as Worker.Run does. leave is
// called right before.
func (w *GuestWorker) Run(ctx context.Context, leave func() error) error {
	own := context.WithoutCancel(ctx)
	me, err := w.Processes.Capture(own, os.Getpid())
	var r Record
	if err == nil {
		r, err = w.begin(ctx, me)
	}
	if err != nil {
		w.Ready(err)
		return errors.Join(err, leave())
	}
	var o *guestOutcome
	seen := watched{err: errNoRepository} // whoever takes a job up does not know how its folder was
	if !w.TakesUp {
		seen = w.lookBefore(own, r.Dir)
		o = w.contain(ctx, &r)
	}
	if o == nil {
		o = w.start(ctx, r, me)
	}
	if o == nil {
		w.Ready(nil)
		o = w.watch(ctx, r)
		o.Warnings = append(o.Warnings, w.unkeptWarnings(r)...)
		switch {
		case o.lost: // the VM may be gone
		case r.Containment == InCopy:
			seen.intoCopied(own, &o.Outcome)
		default:
			seen.into(own, &o.Outcome)
		}
		if r.Containment == InCopy {
			_, _ = w.Store.Update(own, w.ID, func(r *Record) error { return Keeps(r, me) }) //nolint:errcheck // it decides nothing: the end counts
		}
	} else if w.TakesUp {
		w.Ready(nil) // it has the job: the record, which is yet to be written, says how that ended
	} else {
		w.Ready(errors.New(o.Reason))
	}
	o.Warnings = append(o.Warnings, w.left...)
	if o.ErrorCode == StopFailed && r.Containment == InCopy { // what lives may write on
		o.copy.err = errors.New(o.Reason)
	} else {
		o.copy = w.endCopy(own, r)
	}
	if err := leave(); err != nil {
		o.Warnings = append(o.Warnings, err.Error())
	}
	if o.lost {
		_, err := w.Store.Update(own, w.ID, func(r *Record) error {
			r.Warnings = append(r.Warnings, o.Warnings...)
			o.copy.into(r)
			return Close(r, o.Reason, w.Now())
		})
		_ = w.remove(own) //nolint:errcheck // the VM may be gone
		return err
	}
	err = w.Store.conclude(own, w.ID, me, o.with(w.report(own, r)), w.Now)
	if now, unread := w.Store.Read(w.ID); err == nil || unread == nil && now.Status.IsTerminal() {
		err = errors.Join(err, w.remove(own)) // its record tells all now
	}
	return err
}

// guestOutcome is an Outcome, or the loss of the job: nothing of it lives, and nobody knows how it ended.
type guestOutcome struct {
	Outcome
	lost bool
}

func (w *GuestWorker) begin(ctx context.Context, me process.Identity) (Record, error) {
	own := context.WithoutCancel(ctx)
	if !w.TakesUp {
		err := turn{store: w.Store, processes: w.Processes, id: w.ID, me: me, now: w.Now, ready: &w.Ready}.await(ctx)
		if err != nil {
			return Record{}, err
		}
		return w.Store.Update(own, w.ID, func(r *Record) error { return Begin(r, me) })
	}
	r, err := w.Store.Read(w.ID)
	if err != nil {
		return r, err
	}
	if r.Worker != nil {
		if verdict, why := w.Processes.Verify(*r.Worker); verdict != process.Gone && verdict != process.Reused {
			return r, fmt.Errorf("take job %s up: its worker is not known to be gone: %s", w.ID, why)
		}
	}
	return w.Store.Commit(own, w.ID, r.Revision, func(r *Record) error { return TakeUp(r, me) })
}

// start starts the command, unless it is to be taken up. nil: it runs. It does not start once its end is asked for, also during the look
// at its folder.
func (w *GuestWorker) start(asked context.Context, r Record, me process.Identity) *guestOutcome {
	ctx := context.WithoutCancel(asked)
	if r.Status == Running {
		return nil
	}
	if !w.TakesUp {
		if now, err := w.Store.Read(w.ID); asked.Err() != nil || err == nil && now.Cancel != nil {
			return &guestOutcome{Outcome: Outcome{Requested: true, Reason: ErrCancelled.Error()}}
		}
		if o := w.launch(ctx, r); o != nil {
			return o
		}
	} else if l, err := w.look(ctx); err == nil && l.how == "none" {
		return &guestOutcome{lost: true, Outcome: Outcome{Reason: "its worker is gone, and had not started it"}}
	}
	if _, err := w.Store.Update(ctx, w.ID, func(r *Record) error { return Run(r, me, nil, w.Now()) }); err != nil {
		_ = w.end(ctx, "KILL") //nolint:errcheck // the first error counts
		return &guestOutcome{Outcome: Outcome{ErrorCode: CodeOf(err, FinalizationFailed), Reason: err.Error()}}
	}
	return nil
}

func (w *GuestWorker) launch(ctx context.Context, r Record) *guestOutcome {
	failed := func(code ErrorCode, err error) *guestOutcome {
		return &guestOutcome{Outcome: Outcome{ErrorCode: code, Reason: err.Error()}}
	}
	prompt, err := os.ReadFile(w.Store.Path(w.ID, promptFile))
	if err != nil {
		return failed(PromptMissing, fmt.Errorf("read the prompt: %w", err))
	}
	if err := os.Remove(w.Store.Path(w.ID, promptFile)); err != nil {
		return failed(PromptMissing, err)
	}
	limit, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	environ := append(w.Environ[:len(w.Environ):len(w.Environ)], "supervise="+guestSupervise, Marker+"_SUPERVISOR="+string(w.ID))
	if r.Unforced {
		environ = append(environ, "unforced=1")
	}
	if w.ceiling != "" {
		environ = append(environ, "GIT_CEILING_DIRECTORIES="+w.ceiling)
	}
	o, err := w.Guest.Run(limit, providers.Command{
		Args: append([]string{"sh", "-c", guestStart, "start", string(w.ID), r.Dir}, r.Command...), Dir: "/", Env: environ, Stdin: bytes.NewReader(prompt),
	})
	var fate *providers.FateError
	switch {
	case errors.As(err, &fate):
		return nil // it may run: looking tells
	case err != nil:
		return failed(SpawnFailed, err)
	case o.Status != 0:
		return failed(SpawnFailed, fmt.Errorf("start it: status %d: %s", o.Status, strings.TrimSpace(o.Stderr)))
	}
	return nil
}

// inside runs one of the programs, and returns what it printed.
func (w *GuestWorker) inside(ctx context.Context, program string, args ...string) ([]byte, error) {
	limit, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return w.call(limit, guestCall{program: program, args: args})
}

// guestCall is a run of one of the programs.
type guestCall struct {
	program string
	args    []string // after the ID
	stdin   io.Reader
	env     []string
}

// run runs one of the programs that work on the copy of the job, without a limit of its own.
func (w *GuestWorker) run(ctx context.Context, c guestCall) ([]byte, error) {
	c.env = w.copier()
	return w.call(ctx, c)
}

func (w *GuestWorker) call(ctx context.Context, c guestCall) ([]byte, error) {
	var out bytes.Buffer
	o, err := w.Guest.Run(ctx, providers.Command{
		Args: append([]string{"sh", "-c", c.program, "job", string(w.ID)}, c.args...), Dir: "/", Env: c.env, Stdin: c.stdin, Stdout: &out,
	})
	if err == nil && o.Status != 0 {
		err = fmt.Errorf("status %d", o.Status)
		if said := strings.TrimSpace(o.Stderr); said != "" {
			err = errors.New(said)
		}
	}
	return out.Bytes(), err
}

func (w *GuestWorker) end(ctx context.Context, signal string) error {
	_, err := w.inside(ctx, guestEnd, signal)
	return err
}

// look is one observation of a job inside a guest.
type look struct {
	how    string // none | runs | ended | lost
	status int
	left   bool             // its command has ended, and processes that it left behind run
	sizes  map[string]int64 // of the outputs
}

func (w *GuestWorker) look(ctx context.Context) (look, error) {
	out, err := w.inside(ctx, guestLook)
	if err != nil {
		return look{}, err
	}
	f := strings.Fields(string(out))
	if len(f) != 4 {
		return look{}, fmt.Errorf("look at job %s: %q is not understood", w.ID, out)
	}
	l := look{how: f[0], left: f[1] == "left", sizes: map[string]int64{}}
	if l.how == "ended" {
		l.status, err = strconv.Atoi(f[1])
	}
	for i, name := range []string{"stdout", "stderr"} {
		n, failed := strconv.ParseInt(f[2+i], 10, 64)
		l.sizes[name], err = n, errors.Join(err, failed)
	}
	return l, err
}

// watch looks at the command until it has ended, and ends it when its time is over or its end is
// asked for.
func (w *GuestWorker) watch(ctx context.Context, r Record) *guestOutcome {
	own := context.WithoutCancel(ctx)
	begun := r.Started
	if begun.IsZero() {
		begun = w.Now()
	}
	grown, seen, o := w.Now(), w.Now(), &guestOutcome{}
	w.unkept = map[string]error{}
	var asked, forced, leaving time.Time
	for {
		l, err := w.look(own)
		now := w.Now()
		if err == nil {
			seen = now
			if l.how != "runs" {
				clear(w.unkept) // the disk may have room again
			}
			var more bool
			if more, err = w.copyOutputs(own, l); more {
				grown = now
			}
			if l.left && leaving.IsZero() {
				leaving = now
			}
		}
		if asked.IsZero() && !leaving.IsZero() && now.Sub(leaving) >= time.Duration(r.Grace) && !w.mayKillNow(r) {
			w.resists(own, r, "its command has ended, and what it left behind was asked to end and runs on: it is not forced")
		}
		switch {
		case err != nil && now.Sub(seen) >= Window:
			return &guestOutcome{lost: true, Outcome: Outcome{Reason: "nobody could look at it for " + Window.String() + ": " + err.Error()}}
		case err != nil: // the VM may come back
		case l.how == "ended":
			o.ExitCode = &l.status
			left, err := w.inside(own, guestLeft)
			if err != nil {
				o.Warnings = append(o.Warnings, err.Error())
			}
			o.Leftovers = append(o.Leftovers, strings.Split(strings.TrimSpace(string(left)), "\n")...)
			if len(left) == 0 {
				o.Leftovers = nil
			}
			return o
		case l.how != "runs":
			return &guestOutcome{lost: true, Outcome: Outcome{Reason: "nothing of it lives in " + r.Inside + ", and nothing says how it ended"}}
		case !forced.IsZero() && now.Sub(forced) >= forceWait:
			o.ErrorCode, o.Reason = StopFailed, "processes that it started do not end"
			return o
		case !asked.IsZero() && now.Sub(asked) >= time.Duration(r.Grace) && !w.mayKillNow(r):
			w.resists(own, r, resistance(r))
		case !asked.IsZero() && now.Sub(asked) >= time.Duration(r.Grace):
			if w.end(own, "KILL") == nil && forced.IsZero() {
				forced = now
			}
		case asked.IsZero() && (leaving.IsZero() && isLate(r, o, now.Sub(begun), now.Sub(grown)) || w.isOver(ctx, o)):
			if w.end(own, "TERM") == nil {
				asked = now
			}
		}
		clock.Pause(own, guestTick)
	}
}

// mayKillNow is mayKill by the record as it is now.
func (w *GuestWorker) mayKillNow(r Record) bool {
	if mayKill(r) {
		return true
	}
	now, err := w.Store.Read(w.ID)
	return err == nil && mayKill(now)
}

func (w *GuestWorker) resists(ctx context.Context, r Record, reason string) {
	_, _ = w.Store.Update(ctx, w.ID, func(now *Record) error { return Resists(now, *r.Worker, reason) }) //nolint:errcheck // it decides nothing: the end counts
}

// isLate reports whether the time of the command of a job is over, and writes which into o.
func isLate(r Record, o *guestOutcome, ran, idle time.Duration) bool {
	switch {
	case r.Timeout > 0 && ran >= time.Duration(r.Timeout):
		o.ErrorCode, o.Reason = TimedOut, "not done after "+time.Duration(r.Timeout).String()
	case r.IdleTimeout > 0 && idle >= time.Duration(r.IdleTimeout):
		o.ErrorCode, o.Reason = IdleTimedOut, "no output for "+time.Duration(r.IdleTimeout).String()
	default:
		return false
	}
	return true
}

// isOver reports whether somebody asks for the end of the job, and writes into o if its worker was asked.
func (w *GuestWorker) isOver(ctx context.Context, o *guestOutcome) bool {
	if ctx.Err() != nil {
		o.Requested = true
		return true
	}
	now, err := w.Store.Read(w.ID)
	return err == nil && now.Cancel != nil
}
