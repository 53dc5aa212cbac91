package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vmctl/cmd/internal/view"
	"vmctl/internal/clock"
	"vmctl/providers/job"
)

type jobsDocument struct {
	FormatVersion string    `json:"format_version"`
	Jobs          []jobView `json:"jobs"`
	Unreadable    []string  `json:"unreadable"`
}

func (a *app) jobListCommand() *cobra.Command {
	var l jobListing
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the jobs",
		Long: "List the jobs with their status as the processes of this host prove it now; a status\n" +
			"that differs from the record is marked \"unreconciled\". Nothing is written. Jobs that are\n" +
			"queued are left out without --all. --mode lists those of one mode alone: see mode of a job\n" +
			"block, and job run --mode.",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.jobList(cmd.Context(), l) },
	}
	l.register(cmd.Flags())
	return cmd
}

// jobListing says which jobs are listed.
type jobListing struct {
	all  bool   // queued ones too
	mode string // "": of any
}

func (l *jobListing) register(f *pflag.FlagSet) {
	f.BoolVar(&l.all, "all", false, "also list queued jobs")
	f.StringVar(&l.mode, "mode", "", "list the jobs of the mode `WORD` alone")
}

// has reports whether a job is listed.
func (l jobListing) has(v jobView) bool {
	return (l.all || v.Derived != job.Queued) && (l.mode == "" || v.Mode == l.mode)
}

func (a *app) jobStatusCommand() *cobra.Command {
	var l jobListing
	cmd := &cobra.Command{
		Use:   "status [JOB]",
		Short: "Show the status of a job, or of all",
		Long: "Show the status of one job, or list all as job list does. The status is what the\n" +
			"processes of this host prove now. Nothing is written.",
		Args: between(0, 1, "the ID of a job, or the address of its block"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.jobList(cmd.Context(), l)
			}
			s, v, err := a.readJob(cmd.Context(), args[0], "job status")
			if err == nil {
				a.showJob(s, v)
			}
			return err
		},
	}
	l.register(cmd.Flags())
	return cmd
}

func (a *app) jobResultCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "result JOB",
		Short: "Show how a job ended",
		Long: "Show how a job ended. The exit code is 0 for a job that completed, 4 for one that\n" +
			"exceeded its time, 6 for one that is stale, and 1 for any other.",
		Args: one("the ID of a job, or the address of its block"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, v, err := a.readJob(cmd.Context(), args[0], "job result")
			if err != nil {
				return err
			}
			if !v.Derived.IsTerminal() {
				return newProblem(classFailed, "bad_state", "show the result of job "+args[0]+": it is "+string(v.Derived),
					a.commandLine("job wait", planFlags{}, args[0]))
			}
			a.showJob(s, v)
			return jobEnd(v)
		},
	}
}

func (a *app) jobWaitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait JOB [JOB...]",
		Short: "Wait for jobs to end",
		Long:  "Wait until all jobs have ended. The exit code is 0 if all completed, else as of job\nresult for the first that did not.",
		Args:  between(1, -1, "the ID of a job, or the address of its block"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if timeout > 0 {
				limited, cancel := context.WithTimeout(ctx, timeout)
				defer cancel()
				ctx = limited
			}
			return a.jobWait(ctx, args)
		},
	}
	cmd.Flags().Var(waitFlag{&timeout}, "timeout", "wait for this `DURATION` at most; 0: without end")
	return cmd
}

func (a *app) jobWait(ctx context.Context, ids []string) error {
	var s job.Store
	all := slices.Clone(ids)
	for i, id := range ids {
		store, v, err := a.readJob(ctx, id, "job wait")
		if err != nil {
			return err
		}
		s, all[i] = store, string(v.ID)
	}
	doc := jobsDocument{FormatVersion: view.FormatVersion, Jobs: []jobView{}, Unreadable: []string{}}
	err := a.waitForJobs(ctx, s, all, func(v jobView) { doc.Jobs = append(doc.Jobs, v) })
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = a.jobsLeft(context.WithoutCancel(ctx), s, all, err)
	}
	if err != nil {
		return err
	}
	a.show(doc, func(screen view.Screen) { view.Jobs(screen, a.jobRows(doc.Jobs)) })
	for _, v := range doc.Jobs {
		if err := jobEnd(v); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) jobList(ctx context.Context, l jobListing) error {
	p, err := a.openExisting()
	if err != nil {
		return err
	}
	store := a.jobs(p, "job list")
	records, unread, err := store.List()
	if err != nil {
		return err
	}
	doc := jobsDocument{FormatVersion: view.FormatVersion, Jobs: []jobView{}, Unreadable: []string{}}
	for _, r := range records {
		if v := a.viewOf(ctx, store, r); l.has(v) {
			doc.Jobs = append(doc.Jobs, v)
		}
	}
	for _, err := range unread {
		doc.Unreadable = append(doc.Unreadable, err.Error())
		view.Warning(a.errScreen(), err.Error())
	}
	a.show(doc, func(s view.Screen) { view.Jobs(s, a.jobRows(doc.Jobs)) })
	return nil
}

func (a *app) jobRows(all []jobView) []view.JobRow {
	rows := []view.JobRow{}
	for _, v := range all {
		rows = append(rows, view.JobRow{ID: string(v.ID), Status: v.word(), Created: v.Created, Command: strings.Join(v.Command, " ")})
	}
	return rows
}

// word returns the status for people.
func (v jobView) word() string {
	if v.Derived != v.Status {
		return string(v.Derived) + " (unreconciled)"
	}
	return string(v.Derived)
}

func (a *app) showJob(store job.Store, v jobView) {
	a.show(jobDocument{view.FormatVersion, v}, func(s view.Screen) {
		d := view.JobDetails{
			JobRow: a.jobRows([]jobView{v})[0], Dir: v.Dir, Mode: v.Mode, Reason: v.DerivedReason, Warnings: append([]string{}, v.Warnings...),
			Next: a.afterJob(store, v), Changes: changesOf(store, v.Record),
		}
		if v.ExitCode != nil {
			d.Exit = fmt.Sprint(*v.ExitCode)
		}
		for _, l := range v.Leftovers {
			d.Warnings = append(d.Warnings, "left behind, and ended: "+l)
		}
		if v.LeftCopy != nil {
			d.Warnings = append(d.Warnings, v.LeftCopy.String())
		}
		view.Job(s, d)
	})
}

// mostChanges is the number of files that job result names; the record has more.
const mostChanges = 20

// changesOf returns what a job changed in its copy, and where the patch is.
func changesOf(s job.Store, r job.Record) (lines []string) {
	if r.Edits == nil {
		return nil
	}
	total := 0
	var counts []string
	for _, kind := range []job.EditKind{job.Added, job.Edited, job.Removed, job.Retyped} {
		total += r.EditCounts[kind]
		counts = append(counts, fmt.Sprintf("%d %s", r.EditCounts[kind], kind))
	}
	where := "in its copy, which is gone: "
	if r.LeftCopy != nil {
		where = "in its copy: "
	}
	lines = append(lines, where+strings.Join(counts, ", "))
	for _, e := range r.Edits[:min(len(r.Edits), mostChanges)] {
		lines = append(lines, string(e.Kind)+" "+e.Path)
	}
	if more := total - mostChanges; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	if r.Ignored > 0 {
		lines = append(lines, "and "+counted(r.Ignored, "ignored file")+", not kept")
	}
	if r.Patch {
		line := "patch: " + s.PatchPath(r.ID)
		if r.PatchBytes > 0 { // the records of earlier versions do not say it
			line += fmt.Sprintf(" (%d bytes)", r.PatchBytes)
		}
		lines = append(lines, line)
	}
	return lines
}

// afterJob returns the commands that show why a job has not completed, and that go on with it.
func (a *app) afterJob(s job.Store, v jobView) (next []string) {
	if !v.Derived.IsTerminal() || v.Derived == job.Completed {
		return nil
	}
	for file, flags := range map[string][]string{"stdout": nil, "stderr": {"--stderr"}} {
		if text, err := readPart(s.Path(v.ID, file), 0); err == nil && len(text) > 0 {
			next = append(next, a.commandLine("job logs", planFlags{}, append(flags, string(v.ID))...))
		}
	}
	slices.Sort(next)
	if v.HasSession() {
		next = append(next, a.commandLine("job continue", planFlags{}, string(v.ID)))
	}
	return next
}

func (a *app) jobLogsCommand() *cobra.Command {
	var follow, stderr bool
	cmd := &cobra.Command{
		Use:   "logs JOB",
		Short: "Show the output of a job",
		Long:  "Show what the command of a job has written to standard output, or with --stderr to\nstandard error. --follow also shows new output, until the job has ended.",
		Args:  one("the ID of a job, or the address of its block"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "stdout"
			if stderr {
				name = "stderr"
			}
			return a.jobLogs(cmd.Context(), args[0], jobLogRequest{file: name, follow: follow})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "also show new output, until the job has ended")
	cmd.Flags().BoolVar(&stderr, "stderr", false, "show standard error instead")
	return cmd
}

type jobLogDocument struct {
	FormatVersion string `json:"format_version"`
	Type          string `json:"type"` // "log"
	ID            job.ID `json:"id"`
	Text          string `json:"text"`
}

// jobLogRequest says which output of a job is shown, and whether what is added to it is too.
type jobLogRequest struct {
	file   string
	follow bool
}

func (a *app) jobLogs(ctx context.Context, id string, r jobLogRequest) error {
	p, err := a.openExisting()
	if err != nil {
		return err
	}
	s, v, err := a.readJobOf(ctx, p, id, "job logs")
	if err != nil {
		return err
	}
	out, masked := a.consoleWriter(), maskedLines{secret: len(p.config.Secrets()) > 0, mask: p.masker.Text}
	for from := int64(0); ; {
		ended := v.Derived.IsTerminal() // before the output is read: what was written by then is shown
		for {
			text, err := readPart(s.Path(v.ID, r.file), from)
			if err != nil {
				return fmt.Errorf("read the output of job %s: %w", id, err)
			}
			end := len(text) == 0
			from += int64(len(text))
			if text = masked.take(text, end && (ended || !r.follow)); len(text) == 0 {
				if end {
					break
				}
				continue
			}
			if a.global.json {
				a.line(jobLogDocument{view.FormatVersion, "log", v.ID, strings.ToValidUTF8(string(text), "\ufffd")})
				continue
			}
			out.Write(text)
		}
		out.Flush()
		if ended || !r.follow || a.stdout.ended() {
			return nil
		}
		if err := pauseForJob(ctx); err != nil {
			return err
		}
		now, err := s.Read(v.ID)
		if err != nil {
			return a.jobProblem(err)
		}
		v = a.viewOf(ctx, s, now)
	}
}

// readPart reads a part of a file that may not be there yet.
func readPart(path string, from int64) (text []byte, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	text = make([]byte, partSize)
	n, err := f.ReadAt(text, from)
	if n > 0 || errors.Is(err, io.EOF) {
		err = nil
	}
	return text[:n], err
}

// pauseForJob waits between two looks at a job.
func pauseForJob(ctx context.Context) error { return clock.Sleep(ctx, 100*time.Millisecond) }
