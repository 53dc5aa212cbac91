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
		return newProblem(classFailed, "bad_state", "continue job "+id+": it is "+string(v.Derived),
			a.commandLine("job cancel", planFlags{}, id), a.commandLine("job wait", planFlags{}, id))
	}
	var conflict *job.ConflictError
	if _, err := s.Reconcile(ctx, v.Record, a.observer()); err != nil && !errors.As(err, &conflict) {
		return a.jobProblem(err)
	}
	report, err := s.ReportOf(v.Record) // the record of a job that was cut short lacks the session
	if err != nil {
		return err
	}
	r.in, r.agent, r.parent = v.Workspace, v.Agent, v.ID
	r.block, r.digest, r.key, r.maxParallel = v.Block, v.Digest, v.Key, v.MaxParallel
	r.containment, r.scope = cmp.Or(v.Containment, job.Uncontained), cmp.Or(v.Scope, job.WorkingTree) // old records say neither
	r.timeout, r.idle, r.grace = time.Duration(v.Timeout), time.Duration(v.IdleTimeout), time.Duration(v.Grace)
	r.unforced = v.Unforced
	if r.in == "" {
		r.dir = v.Dir
	}
	session := v.Session
	if report != nil {
		session = cmp.Or(session, report.Session)
	}
	if session == "" {
		return newProblem(classFailed, "no_session_to_resume", "continue job "+id+": "+v.Agent+" has no session that could be resumed",
			a.againLine(v.Record)+" runs it again")
	}
	if r.env, err = a.environmentOf(ctx, p, v.Record); err != nil {
		return err
	}
	r.mask = p.masker.Text
	r.command = job.AgentOf(v.Agent).Resume(v.Command, session)
	return a.jobRun(ctx, r)
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
