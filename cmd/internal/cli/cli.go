// Package cli is the command line of vmctl: one file for each command, the list of provider
// types, and the meaning of exit codes. It decides nothing about virtual machines: spec,
// planner and executor do that. It writes nothing itself: view does that.
package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"vmctl/cmd/internal/view"
	"vmctl/providers"
	"vmctl/providers/workspace"
	"vmctl/spec"
)

// Env is the process as vmctl sees it. Tests make their own.
type Env struct {
	Args     []string // without the program's name
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Terminal Terminal
	Environ  []string // NAME=value
	Dir      string   // the working directory, absolute
	UID      int      // of the user; 0 is root, -1 where there are none
	Program  string   // this very program, absolute; "" if that is unknown
	Now      func() time.Time
	Rand     io.Reader
	Build    Build
	Types    providers.Types // zero: those of this build
	// Inside are the types of further kinds of resources, which are inside of others.
	Inside []providers.Type
	// HomeOf returns the home directory of a user of this machine, "" if it is unknown. nil:
	// all are unknown.
	HomeOf func(user string) string
	// Lend gives the terminal to another program: until back is called, an interrupt that the
	// user types goes to that program alone. nil: vmctl goes on receiving it.
	Lend func() (back func())
	// Leave is closed when the user no longer waits for the command to end safely. nil:
	// never.
	Leave <-chan struct{}
}

// Terminal says which streams are terminals, and how large they are.
type Terminal struct {
	In, Out, Err bool
	// Size is asked anew whenever it matters; 0 is unknown. nil: unknown.
	Size func() (columns, rows int)
}

func (t Terminal) size() (columns, rows int) {
	if t.Size == nil {
		return 0, 0
	}
	return t.Size()
}

// Build describes this build of vmctl: its version, Go version and platform.
type Build struct{ Version, Go, Platform string }

// system returns the operating system of the platform.
func (b Build) system() string {
	system, _, _ := strings.Cut(b.Platform, "/")
	return system
}

// Main runs one command and returns its exit code. An ended ctx is an interrupt: running
// steps end safely. If the caller closes env.Leave, Main returns before that, and the process
// has to exit.
func Main(ctx context.Context, env Env) int {
	if code, is := becomeTerraform(ctx, env); is {
		return code
	}
	a := newApp(env)
	a.expand = a.skip
	// Running steps end safely even if nobody reads the output.
	stop := context.AfterFunc(ctx, a.stopWaiting)
	defer stop()
	ended := make(chan int, 1)
	go func() { ended <- a.finish(ctx, a.execute(ctx)) }()
	select {
	case code := <-ended:
		return code
	case <-env.Leave:
		if a.stays.Load() {
			return <-ended
		}
		return a.leave(ctx)
	}
}

// app is one run of one command.
type app struct {
	env          Env
	stdout       *sink
	stderr       *sink
	global       globalFlags
	types        providers.Types
	expand       expander
	answer       bool // a document was written: nothing else may follow on stdout
	streams      bool // the command writes a line per event, the last one says how it ended
	changes      atomic.Pointer[mutatingCommand]
	showsVersion bool                    // --version
	config       *spec.Config            // the spec that was read last; nil: none yet
	applied      atomic.Pointer[project] // whose plan is carried out; nil: none is
	creating     sync.Mutex              // of jobs of blocks: their file lock is one between processes
	stays        atomic.Bool             // the command ends by itself, however often it is asked to
}

func newApp(env Env) *app {
	a := &app{env: env, types: env.Types}
	a.stdout, a.stderr = newSinks(env)
	if a.types.Systems == nil {
		a.types = builtInTypes(env, a.serving)
		host := workspaceHost(env)
		host.Transport = a.transport
		a.types.Inside[spec.Workspace] = workspace.Type(host)
		a.types.Inside[spec.Job] = a.jobType()
	}
	return a
}

// execute parses the arguments and runs the command that they name.
func (a *app) execute(ctx context.Context) error {
	root := a.root()
	root.SetArgs(append([]string{}, a.env.Args...)) // for nil, cobra takes those of the process
	cmd, err := root.ExecuteContextC(ctx)
	_, a.streams = cmd.Annotations[streaming]
	if level, wrong := a.logLevel(); wrong == nil {
		a.global.level = level // arguments may have failed before it was read
	}
	return err
}

// streaming is the annotation of commands that write a line for each event with --json. Their
// errors are lines too, even before the first event.
const streaming = "vmctl.streams"

func streams() map[string]string { return map[string]string{streaming: "true"} }

// finish shows the error, waits for the readers of both streams, and returns the exit code.
func (a *app) finish(ctx context.Context, err error) int {
	defer a.farewell(ctx)
	if unread := a.unread(ctx); unread != nil {
		err = errors.Join(err, unread)
	}
	if err == nil {
		err = a.stdout.problem()
	}
	if err != nil {
		a.fail(ctx, err)
	}
	return ExitCode(err)
}

// fail shows an error: for people on stderr, and for programs as the one
// document on stdout.
func (a *app) fail(ctx context.Context, err error) {
	a.log().LogAttrs(ctx, levelError, "command failed", errAttr(err), codeAttr(ExitCode(err)))
	if silent(err) {
		return
	}
	diags, files := diagnosticsOf(err)
	if len(diags) > 0 {
		view.Diagnostics(a.errScreen(), files, diags)
	}
	if !diags.HasErrors() {
		a.failForPeople(err)
	}
	if !a.global.json || a.answer {
		return
	}
	document := view.FailureJSON(a.wholeProblem(err), diags)
	if a.streams {
		a.line(view.ErrorEvent{Type: "error", FailureDocument: document})
		return
	}
	a.document(document)
}

// failForPeople shows the parts of an error that people have not read yet. With --json they
// have read none.
func (a *app) failForPeople(err error) {
	if !a.global.json {
		err = untold(err)
	}
	if err == nil {
		return
	}
	for _, part := range parts(err) {
		shown := a.problemOf(part)
		var p *problem
		if errors.As(part, &p) && p.shown && !a.global.json {
			shown = view.ProblemDocument{Message: shown.Message}
		}
		view.Failed(a.errScreen(), shown)
	}
}

// show writes the result of a command: a document with --json, else text.
func (a *app) show(document any, text func(view.Screen)) {
	if a.global.json {
		a.document(document)
		return
	}
	text(a.screen())
}

func (a *app) document(document any) {
	a.answer = true
	a.stdout.keep(view.JSON(a.stdout, document))
}

func (a *app) line(document any) {
	a.stdout.keep(view.Line(a.stdout, document))
}
