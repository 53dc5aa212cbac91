package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/internal/ctyread"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/job"
	"vmctl/providers/workspace"
	"vmctl/spec"
)

// jobRequest holds the flags of a job run.
type jobRequest struct {
	dir                  string // "": in the workspace
	in                   string // the name of a workspace; "": in the folder
	agent                string
	prompt               string // a file, "-": standard input, "": none
	pass, set            []string
	asked                job.Asked // of pass and set, the part that is neither the workspace's nor the block's
	stripProxy           bool
	env                  cty.Value // the env block of its job block; null: none
	timeout, idle, grace time.Duration
	unforced             bool
	window               time.Duration // in which it has to get a known process; 0: the usual one
	mode                 string
	command              []string
	parent               job.ID
	block, digest, key   string // of the job block; "": it is a run of none
	containment          job.Containment
	scope                job.Scope
	maxParallel          int                 // of the jobs of its block; 0: any number
	text                 []byte              // of the prompt, in place of a file
	mask                 func(string) string // replaces the secrets in the beginning of the prompt; nil: those of the spec
}

// The times that a job has unless its flags say others.
const (
	jobTimeout     = 2 * time.Hour
	jobIdleTimeout = 30 * time.Minute
	jobGrace       = 10 * time.Second
)

type jobDocument struct {
	FormatVersion string  `json:"format_version"`
	Job           jobView `json:"job"`
}

func (a *app) jobRunCommand() *cobra.Command {
	var (
		r     jobRequest
		force bool
	)
	cmd := &cobra.Command{
		Use:   "run {ADDRESS | {--in WORKSPACE | --in-dir DIR} -- COMMAND [ARG...]}",
		Short: "Run a job block, or a command in the background of a workspace or a folder",
		Long: "Run the job of a block, by the address of the block (job.review, job.each[\"a\"]). One\n" +
			"job of a block runs at a time.\n\n" +
			"Or run a command in a workspace or in a folder of this host, and return as soon as it\n" +
			"runs. The command gets its arguments unchanged: no shell reads them. It outlives the\n" +
			"terminal; whatever it has started and left behind ends with it. While it runs, apply\n" +
			"and destroy leave its workspace alone, and the VM around that.\n\n" +
			"Its environment starts empty and gets PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_*,\n" +
			"XDG_*, TZ and the proxies, a TMPDIR of its own, and what --pass-env and --set-env\n" +
			"name; in a workspace also what env in its block, and in that of the job, passes and\n" +
			"sets. The record holds the names alone. The command reads the file of --prompt from\n" +
			"standard input; of that the record holds the first 200 characters.\n\n" +
			"With --agent the output decides how the job ended: an agent that exits with 0 and\n" +
			"gives no result, or a failed one, has failed. claude needs -p --output-format\n" +
			"stream-json --verbose, codex exec --json, gemini -o stream-json.",
		Args: between(1, -1, "the address of a job block, or a command after --"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, is := jobBlockOf(args[0]); is && len(args) == 1 && cmd.ArgsLenAtDash() < 0 {
				if err := notOfBlock(cmd.Flags()); err != nil {
					return err
				}
				return a.runBlock(cmd.Context(), args[0], r)
			}
			r.command, r.unforced = args, !force
			return a.jobRun(cmd.Context(), r)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVar(&r.in, "in", "", "run in the workspace `NAME`")
	f.StringVar(&r.dir, "in-dir", "", "run in the folder `DIR`")
	f.StringVar(&r.agent, "agent", job.Plain, "read the output as that of the `AGENT`: "+strings.Join(job.Agents(), ", "))
	r.registerInput(f)
	f.StringVar((*string)(&r.containment), "containment", string(job.Uncontained), "`WHERE` the command may write: none: in the workspace, like you; worktree: in a copy, which is removed at the end")
	f.StringVar((*string)(&r.scope), "scope", string(job.WorkingTree), "the `PART` of the workspace that the copy holds: working-tree, staged, branch-diff or head")
	f.BoolVar(&r.stripProxy, "strip-proxy", false, "pass no variables of proxies")
	r.timeout, r.idle, r.grace = jobTimeout, jobIdleTimeout, jobGrace
	f.Var(waitFlag{&r.timeout}, "timeout", "end the command after this `DURATION`; 0: never")
	f.Var(waitFlag{&r.idle}, "idle-timeout", "end the command after this `DURATION` without output; 0: never")
	f.Var(waitFlag{&r.grace}, "grace", "the `DURATION` between asking the command to end and forcing it")
	f.StringVar(&r.mode, "mode", "", "a `WORD` for what the command does, like review; job list --mode finds it")
	f.BoolVar(&force, "force", true, "kill the command after the grace; false: let it run on until it ends by itself")
	return cmd
}

// registerInput registers the flags for what the command gets.
func (r *jobRequest) registerInput(f *pflag.FlagSet) {
	f.StringVar(&r.prompt, "prompt", "", "give the command `FILE` as standard input; - is vmctl's own")
	f.StringArrayVar(&r.pass, "pass-env", nil, "pass the variable `NAME`; NAME* is all that begin so")
	f.StringArrayVar(&r.set, "set-env", nil, "set a variable: `NAME=VALUE`")
}

func (a *app) jobRun(ctx context.Context, r jobRequest) error {
	for _, entry := range r.set {
		if name, _, ok := strings.Cut(entry, "="); !ok || name == "" {
			return rejected("bad_args", "read --set-env: it has to be NAME=VALUE") // the text may be a secret
		}
	}
	if r.mode != "" && !spec.IsObjectName(r.mode) {
		return rejected("bad_args", fmt.Sprintf("read --mode=%s: a mode has 1 to 63 letters, digits, \".\", \"_\" and \"-\", and begins with a letter or digit", r.mode))
	}
	if err := job.CheckContainment(r.containment, r.scope); err != nil {
		return rejected("bad_args", "job run: "+err.Error())
	}
	switch {
	case !slices.Contains(job.Agents(), r.agent):
		return rejected("bad_args", "read --agent="+r.agent+": the agents are "+strings.Join(job.Agents(), ", "))
	case r.in != "" && r.dir != "":
		return rejected("bad_args", "job run takes --in or --in-dir, not both")
	case r.in != "":
		return a.jobRunInWorkspace(ctx, r)
	case r.dir == "":
		return rejected("bad_args", "job run needs a workspace or a folder to run in", "vmctl job run --in WORKSPACE -- COMMAND", "vmctl job run --in-dir DIR -- COMMAND")
	}
	dir := a.absolute(r.dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return rejected("bad_args", "run in "+dir+": it is no folder")
	}
	switch {
	case r.containment == job.InCopy && !isUnderGit(dir):
		return rejected("bad_args", fmt.Sprintf("run in %s: with the containment %s git says what is copied, and the folder is not under git: leave it out, or use a repository", dir, job.InCopy))
	case r.scope == job.BranchDiff:
		return rejected("bad_args", fmt.Sprintf("run in %s: the scope %s compares with the commit that the branch of a workspace began at: run it with --in, or use another scope", dir, job.BranchDiff))
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	if !isUnderGit(dir) {
		view.Warning(a.errScreen(), dir+" is not under git: no ignore rules apply to it, and nobody can say afterwards what the job changed there")
	}
	r.asked = r.askedNow()
	started, err := a.runJob(ctx, p, r, job.Record{Dir: dir})
	if err != nil {
		return err
	}
	a.tellStarted(ctx, a.jobs(p, "job run"), started)
	return nil
}

// isUnderGit reports whether a folder is in a repository of git.
func isUnderGit(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// jobRunInWorkspace starts a job in a workspace.
func (a *app) jobRunInWorkspace(ctx context.Context, r jobRequest) error {
	p, err := a.openRecorded(ctx)
	if err != nil {
		return err
	}
	started, err := a.startInWorkspace(ctx, p, r)
	if err != nil {
		return err
	}
	a.tellStarted(ctx, a.jobs(p, "job run"), started)
	return nil
}

// startInWorkspace starts a job in a workspace of a project.
func (a *app) startInWorkspace(ctx context.Context, p *project, r jobRequest) (started job.Record, err error) {
	err = a.inWorkspaceOf(ctx, p, visit{vm: r.in, command: "vmctl job run", program: r.command[0]}, func(w enteredWorkspace) error {
		placer, ok := providers.Ability[workspace.Placer](w.system.Provider)
		if !ok {
			return fmt.Errorf("run in %s: its provider does not tell where it is", w.address)
		}
		at, err := placer.Place(ctx, *w.object, spec.Revealed(w.values()))
		if err != nil {
			return err
		}
		r.asked = r.askedNow()
		own, err := placer.Variables(ctx, r.env)
		if err != nil {
			return err
		}
		r.pass, r.set = slices.Concat(passNames(w.environment()), passNames(r.env), r.pass), slices.Concat(at.Env, own, r.set)
		r.stripProxy = r.stripProxy || at.StripProxy || ctyread.True(r.env, "strip_proxy")
		place := job.Record{Dir: at.Dir, Workspace: w.address.String()}
		if (w.inside != spec.Address{}) {
			place.Inside = w.inside.String()
		}
		place.Base = ctyread.Text(w.object.Attrs, "base")
		if place.Base == "" && r.scope == job.BranchDiff {
			return rejected("bad_args", fmt.Sprintf("job run: the commit that the branch of %s began at is not known, and the scope %s compares with it: use another scope", w.address, job.BranchDiff))
		}
		started, err = a.runJob(ctx, w.project, r, place)
		return err
	})
	var early before
	if errors.As(err, &early) { // no program of the user's ran: the exit codes are vmctl's own
		err = early.err
	}
	return started, err
}

// runJob starts a job whose place is known.
func (a *app) runJob(ctx context.Context, p *project, r jobRequest, at job.Record) (job.Record, error) {
	prompt := r.text
	if r.prompt != "" {
		var err error
		if prompt, err = a.jobPrompt(r.prompt); err != nil {
			return at, err
		}
	}
	environ, warnings := job.Environ{From: a.env.Environ, Pass: r.pass, Set: r.set, StripProxy: r.stripProxy}.Build()
	if at.Inside != "" {
		environ, warnings = a.guestEnviron(r)
	}
	for _, w := range warnings {
		view.Warning(a.errScreen(), "the job's environment: "+w)
	}
	if r.mask == nil {
		r.mask = p.masker.Text
	}
	at.Agent, at.Command, at.PromptHead = r.agent, r.command, r.head(prompt)
	at.Environment, at.Asked = job.Names(environ), r.asked
	at.Block, at.Digest, at.Key, at.MaxParallel = r.block, r.digest, r.key, r.maxParallel
	at.Timeout, at.IdleTimeout, at.Grace = job.Duration(r.timeout), job.Duration(r.idle), job.Duration(r.grace)
	at.Containment, at.Scope, at.Unforced = r.containment, r.scope, r.unforced
	at.Window, at.Mode = job.Duration(r.window), r.mode
	at.Parent, at.Warnings = r.parent, warnings
	return a.startJob(ctx, a.jobs(p, "job run"), at, prompt, environ)
}

// askedNow returns the flags about the environment, before what else the job gets is added to them.
func (r jobRequest) askedNow() job.Asked {
	return job.Asked{Pass: slices.Clone(r.pass), Set: job.Names(r.set), StripProxy: r.stripProxy}
}

// tellStarted tells that a job runs.
func (a *app) tellStarted(ctx context.Context, store job.Store, started job.Record) {
	v := a.viewOf(ctx, store, started)
	a.show(jobDocument{view.FormatVersion, v}, func(s view.Screen) {
		where := v.Dir
		if v.Workspace != "" {
			where = v.Workspace + " (" + v.Dir + ")"
		}
		switch {
		case v.Derived == job.Queued:
			view.Note(s, fmt.Sprintf("Job %s is queued for %s: %s.", v.ID, where, v.DerivedReason))
		case v.Containment == job.InCopy: // which is yet to be made: the record says how that went
			view.Note(s, fmt.Sprintf("Job %s begins: it runs in a copy of %s.", v.ID, where))
		default:
			view.Note(s, fmt.Sprintf("Job %s runs in %s.", v.ID, where))
		}
		view.Note(s, a.commandLine("job logs", planFlags{}, "-f", string(v.ID))+" follows it")
	})
}

// startJob makes a record and starts its worker.
func (a *app) startJob(ctx context.Context, s job.Store, r job.Record, prompt []byte, environ []string) (job.Record, error) {
	if a.env.Program == "" {
		return r, errors.New("start a job: this vmctl does not know its own program, which would watch it")
	}
	id := make([]byte, 6)
	if _, err := io.ReadFull(rand.Reader, id); err != nil {
		return r, fmt.Errorf("choose the ID of a job: %w", err)
	}
	r.ID, r.Created = job.ID("j-"+hex.EncodeToString(id)), a.now()
	me, err := process.Host{}.Capture(ctx, os.Getpid())
	if err == nil { // else nobody can tell later whether it lives
		r.Launcher = &me
	}
	if r.Block != "" || r.Parent != "" {
		a.creating.Lock()
		r, err = s.CreateOnly(ctx, r, a.observer())
		a.creating.Unlock()
	} else {
		r, err = s.Create(r)
	}
	l := job.Launch{Program: a.env.Program, Args: []string{jobWorker, s.Dir, string(r.ID)}, Environ: append(environ, job.Marker+"="+string(r.ID))}
	h := job.Handoff{Prompt: prompt}
	if r.Inside != "" {
		l, h.Environ = a.guestLaunch(s, r.ID), environ
	}
	if err == nil {
		r, err = s.HandOff(ctx, r, h, a.now())
	}
	if err != nil {
		return r, a.notLaunched(r, fmt.Errorf("start a job: %w", err))
	}
	if _, err := s.Prune(job.Keep, a.now()); err != nil {
		view.Warning(a.errScreen(), "remove the records of old jobs: "+err.Error())
	}
	started, err := s.Start(ctx, r.ID, l, a.now)
	if err != nil && started.Revision == 0 {
		return started, a.notLaunched(r, err)
	}
	if err != nil {
		e := newProblem(classFailed, string(started.ErrorCode), err.Error(), a.commandLine("job status", planFlags{}, string(r.ID))+" shows its record")
		if e.Code == "" {
			e.Code = "not_started"
		}
		e.err = err
		return started, e
	}
	return started, nil
}

// notLaunched returns the error about a job of which no worker was started, with the command that goes on.
func (a *app) notLaunched(r job.Record, err error) error {
	var (
		active  *job.ActiveError
		unknown *job.UnknownJobError
		inUse   *job.SessionInUseError
	)
	switch {
	case errors.As(err, &inUse):
		e := a.endFirst(err, inUse.By)
		e.err = err
		return e
	case errors.As(err, &active):
		id := string(active.Active.ID)
		e := newProblem(classRefused, "job_active", "run "+r.Block+": "+active.Error(),
			a.commandLine("job wait", planFlags{}, id), a.commandLine("job cancel", planFlags{}, id))
		e.err = err
		return e
	case errors.As(err, &unknown):
		e := newProblem(classRefused, "job_unknown", "run "+r.Block+": "+unknown.Error(), unknown.Next())
		e.err = err
		return e
	}
	next := "run it again once the cause is gone: it has not run"
	if r.Block != "" {
		next = a.againLine(r) + " runs it, once the cause is gone"
	}
	e := newProblem(classFailed, "not_launched", err.Error(), next)
	e.Code, e.err = job.CodeOf(err, e.Code), err
	return e
}

func (a *app) jobPrompt(from string) ([]byte, error) {
	switch from {
	case "":
		return nil, nil
	case "-":
		return io.ReadAll(a.env.Stdin)
	}
	text, err := os.ReadFile(a.absolute(from))
	if err != nil {
		return nil, rejected("bad_args", "read the prompt: "+err.Error())
	}
	return text, nil
}

// head returns the beginning of a prompt without secrets, as much as a record holds.
func (r jobRequest) head(prompt []byte) string {
	const most = 200
	if r.mask != nil {
		prompt = []byte(r.mask(string(prompt)))
	}
	text := []rune(strings.ToValidUTF8(string(prompt[:min(len(prompt), most*utf8.UTFMax)]), "\ufffd"))
	return string(text[:min(len(text), most)])
}

func (a *app) now() time.Time { return a.env.Now().UTC() }
