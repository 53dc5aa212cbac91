package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

type cancelDocument struct {
	FormatVersion string            `json:"format_version"`
	Outcome       job.CancelOutcome `json:"outcome"`
	Job           jobView           `json:"job"`
}

func (a *app) jobCancelCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "cancel JOB",
		Short: "End a job",
		Long: "Record that the job is to end, ask its processes to end, force them after the grace,\n" +
			"and wait until that is done. The exit code is 0 if the job has ended, 1 if it could not\n" +
			"be ended, 3 if there is none, and 6 if its process cannot be told from a stranger's.\n\n" +
			"A job with stop { force = false } is not forced: it runs on if it ignores the request,\n" +
			"and the exit code is 1. --force forces it all the same.",
		Args: one("the ID of a job, or the address of its block"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.jobCancel(cmd.Context(), args[0], jobCancel{force: force})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "kill the job after the grace, also one that is not to be forced")
	return cmd
}

// jobCancel holds the flags of job cancel.
type jobCancel struct{ force bool }

func (a *app) jobCancel(ctx context.Context, id string, flags jobCancel) error {
	s, v, err := a.readJob(ctx, id, "job cancel")
	if err != nil {
		return err
	}
	me, err := a.self("job cancel")
	if err != nil {
		return err
	}
	c := job.Canceller{
		Store: s, Processes: process.Host{}, By: fmt.Sprintf("vmctl job cancel (process %d on %s)", me.PID, me.Host), Now: a.now, Force: flags.force,
		Warn: func(err error) {
			view.Warning(a.errScreen(), fmt.Sprintf("that job %s is to end cannot be recorded, and its processes are asked all the same: %v", id, err))
		},
	}
	if a.observer().NeedsWorker(v.Record) { // its next worker is to know at once
		_, _ = c.Ask(ctx, v.ID) //nolint:errcheck // Cancel asks again, and says why that failed
	}
	if err := a.takeUp(ctx, s, v.Record); err != nil {
		return err
	}
	r, outcome, err := c.Cancel(ctx, v.ID)
	if err == nil {
		a.show(cancelDocument{view.FormatVersion, outcome, a.viewOf(ctx, s, r)}, func(screen view.Screen) {
			view.Note(screen, fmt.Sprintf("Job %s: %s. It is %s.", id, outcome, r.Status))
		})
		return nil
	}
	next := []string{a.commandLine("job status", planFlags{}, id)}
	var resists *job.ResistsError
	if errors.As(err, &resists) {
		next = append(next, a.commandLine("job cancel", planFlags{}, "--force", id)+" kills it")
	}
	e := newProblem(cancelClass(outcome), string(outcome), fmt.Sprintf("cancel job %s: %v", id, err), next...)
	e.err = err
	return e
}

// cancelClass returns the class of a cancel that failed.
func cancelClass(o job.CancelOutcome) class {
	switch o {
	case job.StalePID, job.Unverifiable, job.NoPIDInfo:
		return classRefused
	case job.BadState, job.SignalFailed, job.CancelFailed:
		return classFailed
	case job.Signaled, job.AlreadyDead, job.AlreadyTerminal, job.CancelPending:
		return classFailed // it is as wanted, and its record could not be read
	default:
		panic("no class for cancel outcome " + o)
	}
}
