package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/job"
	"vmctl/providers/workspace"
)

// jobWorker is the name of the command that watches one job.
const jobWorker = "job-worker"

// jobRecords is the folder, in the data directory, of the records of jobs.
const jobRecords = "jobs"

func (a *app) jobCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job",
		Short: "Run agents and other commands in the background",
		Long: "Run agents and other commands in the background, look at them, and end them.\n\n" +
			"Each job has a record in the data directory, and a process of vmctl's own that\n" +
			"watches it. The end of the terminal or of vmctl ends no job.\n\n" +
			"JOB is the ID of a job, or the address of a job block (job.review, job.part[\"a\"]),\n" +
			"which means its newest job.",
		Args: cobra.ArbitraryArgs,
		RunE: a.group,
	}
	cmd.AddCommand(
		a.jobRunCommand(), a.jobListCommand(), a.jobStatusCommand(), a.jobResultCommand(), a.jobLogsCommand(), a.jobWaitCommand(),
		a.jobCancelCommand(), a.jobContinueCommand(),
	)
	return cmd
}

// jobWorkerCommand returns the command that job run starts: it runs one job to its end.
func (a *app) jobWorkerCommand() *cobra.Command {
	var takesUp bool
	cmd := &cobra.Command{
		Use: jobWorker, Hidden: true, Args: cobra.ExactArgs(2),
		Short: "Watch one job",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.stays.Store(true) // asked twice to end, it still ends the job first
			out, ok := a.env.Stdout.(*os.File)
			if !ok {
				return errors.New("watch a job: there is nobody to report to")
			}
			ready := func(err error) { job.Tell(out, err); _ = out.Close() } //nolint:errcheck // nothing else is said
			s := a.jobStore(args[0], jobWorker)
			r, err := s.Read(job.ID(args[1]))
			if err != nil {
				ready(err)
				return err
			}
			if r.Inside != "" {
				return a.workInGuest(cmd.Context(), s, r, guestWork{takesUp: takesUp, ready: ready})
			}
			w := job.Worker{
				Store: s, ID: r.ID, Environ: a.env.Environ, Now: a.now, Ready: ready, Backoff: job.Backoff(),
				Enter: func(ctx context.Context, r job.Record) (func() error, error) { return a.occupy(ctx, s, r) },
			}
			return w.Run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&takesUp, "take-up", false, "the job has begun")
	return cmd
}

func (a *app) jobOwner(command string) lockfile.Owner {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return lockfile.Owner{PID: os.Getpid(), Host: host, Command: "vmctl " + command, Since: a.now()}
}

// jobs returns the records of the jobs of a project.
func (a *app) jobs(p *project, command string) job.Store {
	return a.jobStore(filepath.Join(p.dir, jobRecords), command)
}

// jobStore returns the records of the jobs in a folder.
func (a *app) jobStore(dir, command string) job.Store {
	git := workspace.Runner(func() (providers.Guest, error) { return onThisHost(a.env) })
	return job.Store{Dir: dir, Owner: a.jobOwner(command), Git: git}
}

// jobProblem returns an error about a job with its class and its next command.
func (a *app) jobProblem(err error) error {
	var (
		none   *job.NotFoundError
		unread *job.UnreadableError
	)
	switch {
	case errors.As(err, &none):
		return rejected("not_found", none.Error(), a.commandLine("job list", planFlags{}, "--all")+" lists the jobs")
	case errors.As(err, &unread):
		e := newProblem(classFailed, unread.Code, unread.Error(), "look at that file; vmctl leaves it as it is")
		e.err = err
		return e
	default:
		return err
	}
}

// jobView is a record with its status by the evidence of now.
type jobView struct {
	job.Record
	// Derived is the status that the processes of this host prove. Where it differs from the
	// recorded one, nobody has written it yet.
	Derived       job.Status `json:"derived_status"`
	DerivedReason string     `json:"derived_reason"`
}

func (a *app) observer() job.Observer { return job.Observer{Processes: process.Host{}, Now: a.now()} }

func (a *app) viewOf(ctx context.Context, s job.Store, r job.Record) jobView {
	r, d := s.Look(ctx, r, a.observer())
	return jobView{Record: r, Derived: d.Status, DerivedReason: d.Reason}
}

// readJob reads one record of the project: by its ID, or the newest of a job block by its address.
func (a *app) readJob(ctx context.Context, id, command string) (job.Store, jobView, error) {
	p, err := a.openExisting()
	if err != nil {
		return job.Store{}, jobView{}, err
	}
	return a.readJobOf(ctx, p, id, command)
}

// readJobOf is readJob for a project that is open.
func (a *app) readJobOf(ctx context.Context, p *project, id, command string) (job.Store, jobView, error) {
	s := a.jobs(p, command)
	if addr, is := jobBlockOf(id); is {
		r, ran, err := s.Newest(addr)
		switch {
		case err != nil:
			return s, jobView{}, err
		case !ran:
			return s, jobView{}, rejected("not_found", addr.String()+" has no job: it never ran", a.commandLine("job run", planFlags{}, addr.String()))
		}
		return s, a.viewOf(ctx, s, r), nil
	}
	if err := job.ID(id).Check(); err != nil {
		return s, jobView{}, rejected("bad_args", err.Error())
	}
	r, err := s.Read(job.ID(id))
	if err != nil {
		return s, jobView{}, a.jobProblem(err)
	}
	return s, a.viewOf(ctx, s, r), nil
}

// jobEnd returns the exit status that stands for how a job ended; nil: it completed.
func jobEnd(v jobView) error {
	switch {
	case v.Derived == job.Completed:
		return nil
	case v.Derived == job.Stale:
		return status{code: classRefused.code()}
	case v.ErrorCode == job.TimedOut, v.ErrorCode == job.IdleTimedOut:
		return status{code: classExpired.code()}
	default:
		return status{code: classFailed.code()}
	}
}

func (a *app) waitForJobs(ctx context.Context, s job.Store, ids []string, ended func(jobView)) error {
	for _, id := range ids {
		for {
			r, err := s.Read(job.ID(id))
			if err != nil {
				return a.jobProblem(err)
			}
			if v := a.viewOf(ctx, s, r); v.Derived.IsTerminal() {
				ended(v)
				break
			}
			if err := a.takeUp(ctx, s, r); err != nil {
				return err
			}
			if err := pauseForJob(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// jobsLeft returns the error of a wait whose time is over: which jobs have not ended, and how each of them is.
func (a *app) jobsLeft(ctx context.Context, s job.Store, ids []string, cause error) error {
	var left, how []string
	for _, id := range ids {
		r, err := s.Read(job.ID(id))
		if err != nil {
			return a.jobProblem(err)
		}
		if v := a.viewOf(ctx, s, r); !v.Derived.IsTerminal() {
			left, how = append(left, id), append(how, "job "+id+" is "+string(v.Derived))
		}
	}
	if len(left) == 0 {
		return cause // nil, if the wait saw their end
	}
	e := newProblem(classExpired, "timeout", "wait for jobs: the time is over: "+strings.Join(how, ", "),
		a.commandLine("job wait", planFlags{}, left...), a.commandLine("job cancel", planFlags{}, left[0]))
	e.err = cause
	return e
}
