package cli

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"vmctl/internal/shellword"
	"vmctl/providers/job"
)

func (a *app) jobContinueCommand() *cobra.Command {
	var r jobRequest
	cmd := &cobra.Command{
		Use:   "continue JOB",
		Short: "Continue the session of a job that has ended",
		Long: "Continue the session of an agent's job that has ended, in a new job in the same place.\n" +
			"A command that is no agent, and an agent that named no session, has none: the error has\n" +
			"the command line that runs it again. Flags about the environment count for one job; env\n" +
			"of its workspace and of its block count as they are now.",
		Args: one("the ID of a job, or the address of its block"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.jobContinue(cmd.Context(), args[0], r) },
	}
	r.registerInput(cmd.Flags())
	return cmd
}

func (a *app) jobContinue(ctx context.Context, id string, r jobRequest) error {
	p, err := a.openExisting()
	if err != nil {
		return err
	}
	s, v, err := a.readJobOf(ctx, p, id, "job continue")
	if err != nil {
		return err
	}
	if !v.Derived.IsTerminal() {
		return a.notContinued(&job.StateError{ID: v.ID, Status: v.Derived, Want: "continue"})
	}
	var conflict *job.ConflictError
	if _, err := s.Reconcile(ctx, v.Record, a.observer()); err != nil && !errors.As(err, &conflict) {
		return a.jobProblem(err)
	}
	if err := s.Free(ctx, v.ID, a.observer()); err != nil {
		return a.notContinued(err)
	}
	session, err := s.Session(v.Record)
	if err != nil {
		return a.notContinued(err)
	}
	r.in, r.agent, r.parent = v.Workspace, v.Agent, v.ID
	r.block, r.digest, r.key, r.maxParallel = v.Block, v.Digest, v.Key, v.MaxParallel
	r.containment, r.scope = cmp.Or(v.Containment, job.Uncontained), cmp.Or(v.Scope, job.WorkingTree) // old records say neither
	r.timeout, r.idle, r.grace = time.Duration(v.Timeout), time.Duration(v.IdleTimeout), time.Duration(v.Grace)
	r.unforced, r.window, r.mode = v.Unforced, time.Duration(v.Window), v.Mode
	if r.in == "" {
		r.dir = v.Dir
	}
	if r.env, err = a.environmentOf(ctx, p, v.Record); err != nil {
		return err
	}
	r.mask = p.masker.Text
	r.command = job.AgentOf(v.Agent).Resume(v.Command, session)
	return a.jobRun(ctx, r)
}

// notContinued returns the error about a job that cannot be continued.
func (a *app) notContinued(err error) error {
	var (
		active *job.StateError
		inUse  *job.SessionInUseError
		none   *job.NoSessionError
		other  *job.OtherJobError
		e      *problem
	)
	switch {
	case errors.As(err, &active):
		e = a.endFirst(err, active.ID)
	case errors.As(err, &inUse):
		e = a.endFirst(err, inUse.By)
	case errors.As(err, &none):
		e = newProblem(classFailed, "no_session_to_resume", err.Error(), a.againLine(none.Job)+" runs it again")
		if next := none.Next(); next != "" {
			e.Next = append(e.Next, next)
		}
	case errors.As(err, &other):
		e = newProblem(classRejected, "bad_args", err.Error(), a.commandLine("job status", planFlags{}, string(other.ID)))
	default:
		return a.jobProblem(err)
	}
	e.err = err
	return e
}

// endFirst returns the error about a job that has to end first.
func (a *app) endFirst(err error, first job.ID) *problem {
	id := string(first)
	return newProblem(classFailed, "bad_state", err.Error(), a.commandLine("job cancel", planFlags{}, id), a.commandLine("job wait", planFlags{}, id))
}

// againLine returns the command line that runs a job again from its beginning.
func (a *app) againLine(r job.Record) string {
	if r.Block != "" {
		return a.commandLine("job run", planFlags{}, append(r.Asked.Flags(), r.Block)...)
	}
	return a.commandLine("job run", planFlags{}, againFlags(r)...) + " " + shellword.Join(r.Command)
}

// againFlags returns the flags of job run that a record knows, for another run in its place.
func againFlags(r job.Record) (args []string) {
	if r.Agent != job.Plain {
		args = append(args, "--agent="+r.Agent)
	}
	if r.Containment == job.InCopy {
		args = append(args, "--containment="+string(r.Containment))
	}
	if r.Scope != job.WorkingTree && r.Scope != "" {
		args = append(args, "--scope="+string(r.Scope))
	}
	for _, limit := range []struct {
		flag       string
		has, usual time.Duration
	}{
		{"timeout", time.Duration(r.Timeout), jobTimeout},
		{"idle-timeout", time.Duration(r.IdleTimeout), jobIdleTimeout},
		{"grace", time.Duration(r.Grace), jobGrace},
	} {
		if limit.has != limit.usual {
			args = append(args, "--"+limit.flag+"="+limit.has.String())
		}
	}
	if r.Mode != "" {
		args = append(args, "--mode="+r.Mode)
	}
	if r.Unforced {
		args = append(args, "--force=false")
	}
	args = append(args, r.Asked.Flags()...)
	if r.PromptHead != "" { // the record has no more of it
		args = append(args, "--prompt=FILE")
	}
	if r.Workspace != "" {
		return append(args, "--in", r.Workspace, "--")
	}
	return append(args, "--in-dir", r.Dir, "--")
}
