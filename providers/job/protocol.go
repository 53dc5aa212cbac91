package job

import (
	"errors"
	"fmt"
	"time"

	"vmctl/internal/process"
)

// StateError reports that a record's status does not permit what was asked.
type StateError struct {
	ID     ID
	Status Status
	Want   string // what was attempted
}

// Error says what was attempted, and the status.
func (e *StateError) Error() string {
	return fmt.Sprintf("%s job %s: it is %s", e.Want, e.ID, e.Status)
}

// ErrCancelled says that the end of a job was asked for before it began.
var ErrCancelled = errors.New("its end was asked for before it began")

// errUnchanged makes an update write nothing.
var errUnchanged = errors.New("nothing to write")

// Begin gives a queued job to a worker. Of two workers the second fails. ErrCancelled: the end of
// the job was asked for meanwhile.
func Begin(r *Record, worker process.Identity) error {
	if !waitsFor(r, worker) {
		return &StateError{ID: r.ID, Status: r.Status, Want: "start"}
	}
	if r.Cancel != nil {
		return ErrCancelled
	}
	r.Status, r.Worker, r.Reason = Starting, &worker, ""
	return nil
}

// Run records the command that a worker has started; nil: it ended before it could be identified.
func Run(r *Record, worker process.Identity, command *process.Identity, now time.Time) error {
	if r.Status != Starting || !owns(r, worker) {
		return &StateError{ID: r.ID, Status: r.Status, Want: "record the process of"}
	}
	r.Status, r.Process, r.Started = Running, command, now
	return nil
}

// Keeps records that the command of a worker has ended, and that the worker keeps what it changed in its copy: that may take a while.
func Keeps(r *Record, worker process.Identity) error {
	if r.Status != Running || !owns(r, worker) {
		return &StateError{ID: r.ID, Status: r.Status, Want: "keep the changes of"}
	}
	r.Reason = "its command has ended, and what it changed in its copy is being kept"
	return nil
}

// Resists records that a job did not end within the grace, and is not killed.
func Resists(r *Record, worker process.Identity, reason string) error {
	if r.Status != Running || !owns(r, worker) {
		return &StateError{ID: r.ID, Status: r.Status, Want: "wait for the end of"}
	}
	if r.Reason == reason {
		return errUnchanged
	}
	r.Resists, r.Reason = true, reason
	return nil
}

// resistance is the reason of a job that Resists.
func resistance(r Record) string {
	return "it was asked to end and runs on after " + time.Duration(r.Grace).String() + ": it is not forced"
}

// mayKill reports whether a job may be killed once its grace is over.
func mayKill(r Record) bool { return !r.Unforced || r.Cancel != nil && r.Cancel.Force }

// TakeUp gives a job to another worker, because its own is gone.
func TakeUp(r *Record, worker process.Identity) error {
	if r.Status.IsTerminal() || r.Status == Queued || r.Worker == nil {
		return &StateError{ID: r.ID, Status: r.Status, Want: "take up"}
	}
	r.Worker = &worker
	return nil
}

// mostLeft is the number of processes that a record names: a command that may not be killed can leave some behind for days which start
// others.
const mostLeft = 1000

// Outcome holds the end of a run, as its worker saw it.
type Outcome struct {
	ExitCode  *int
	ErrorCode ErrorCode // "": by itself
	Reason    string
	Leftovers []string
	Warnings  []string
	Changed   []string // as of a Record
	Agent     *Report  // nil: the command is no agent
	Requested bool     // its worker was asked to end it
	copy      copyEnd
}

// Finish writes how the run ended. The exit code decides nothing once a cancel was asked for: a
// command may trap the request and exit with 0. A deadline that expired comes before both. The
// worker of a job that was taken for dead may still finish it; any other terminal record stays.
func Finish(r *Record, worker process.Identity, o Outcome, now time.Time) error {
	if !owns(r, worker) || r.Status.IsTerminal() && r.Status != Stale {
		return &StateError{ID: r.ID, Status: r.Status, Want: "finish"}
	}
	next, code, reason := o.verdict(r)
	if r.Status != Stale && !r.Status.May(next) {
		return &StateError{ID: r.ID, Status: r.Status, Want: "finish"}
	}
	r.Status, r.ErrorCode, r.Reason, r.ExitCode, r.Ended = next, code, reason, o.ExitCode, now
	r.Changed, r.Resists = o.Changed, false
	o.copy.into(r)
	if o.Agent != nil && o.Agent.Session != "" {
		r.Session = o.Agent.Session
	}
	r.Leftovers = append(r.Leftovers, o.Leftovers...)
	r.Leftovers = r.Leftovers[:min(len(r.Leftovers), mostLeft)]
	r.Warnings = append(r.Warnings, o.Warnings...)
	return nil
}

func (o Outcome) verdict(r *Record) (Status, ErrorCode, string) {
	switch {
	case o.ErrorCode == TimedOut, o.ErrorCode == IdleTimedOut, o.ErrorCode == StopFailed:
		return Failed, o.ErrorCode, o.Reason
	case r.Cancel != nil:
		return Cancelled, "", "cancelled by " + r.Cancel.By
	case o.Requested:
		return Cancelled, "", "ended on request: its worker was asked to end it, and the record does not say by whom"
	case o.ErrorCode != "":
		return Failed, o.ErrorCode, o.Reason
	case o.ExitCode == nil:
		return Failed, ExitStatus, "its exit status is not known"
	case *o.ExitCode == 129 || *o.ExitCode == 130 || *o.ExitCode == 137 || *o.ExitCode == 143:
		return Cancelled, "", fmt.Sprintf("ended by a signal from elsewhere (status %d)", *o.ExitCode)
	case o.Agent != nil && o.Agent.Limited:
		return Failed, RateLimited, fmt.Sprintf("its provider refused it for its rate, also at the last of %d retries: %s", r.Retries, o.Agent.Failed)
	case o.Agent != nil && o.Agent.Failed != "":
		return Failed, AgentFailed, fmt.Sprintf("%s; exit status %d", o.Agent.Failed, *o.ExitCode)
	case *o.ExitCode == 0 && o.Agent != nil && !o.Agent.Ended:
		return Failed, NoResult, "the agent ended with exit status 0 and without a result"
	case *o.ExitCode != 0:
		return Failed, ExitStatus, fmt.Sprintf("exit status %d", *o.ExitCode)
	default:
		return Completed, "", ""
	}
}

// Ask records that the end of the job is wanted. A queued job is cancelled by that alone: its worker
// cannot begin any more. Asking again keeps the first intent, but for its force.
func Ask(r *Record, want Cancel) error {
	if r.Status.IsTerminal() {
		return &StateError{ID: r.ID, Status: r.Status, Want: "cancel"}
	}
	switch {
	case r.Cancel == nil:
		r.Cancel = &want
	case want.Force && !r.Cancel.Force:
		first := *r.Cancel
		first.Force = true
		r.Cancel = &first
	case r.Status != Queued:
		return errUnchanged
	}
	if r.Status == Queued {
		r.Status, r.Reason, r.Ended = Cancelled, "cancelled by "+r.Cancel.By+" before it began", want.At
	}
	return nil
}

// Close ends the record of a job of which nothing lives any more: cancelled if its end was asked
// for, else stale. Every other key stays. A terminal record stays as it is.
func Close(r *Record, reason string, now time.Time) error {
	if r.Status.IsTerminal() {
		return &StateError{ID: r.ID, Status: r.Status, Want: "reconcile"}
	}
	r.Ended, r.Resists = now, false
	if r.Cancel != nil {
		r.Status, r.Reason = Cancelled, "cancelled by "+r.Cancel.By+"; "+reason
		return nil
	}
	r.Status, r.ErrorCode, r.Reason = Stale, StaleActiveJob, reason
	return nil
}

// Abandon ends the record of a job whose worker could not be started.
func Abandon(r *Record, code ErrorCode, reason string, now time.Time) error {
	if r.Status != Queued {
		return &StateError{ID: r.ID, Status: r.Status, Want: "abandon"}
	}
	r.Status, r.ErrorCode, r.Reason, r.Ended = Failed, code, reason, now
	return nil
}

func owns(r *Record, worker process.Identity) bool { return r.Worker != nil && *r.Worker == worker }
