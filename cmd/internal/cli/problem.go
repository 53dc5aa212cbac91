package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/state"
)

// class is the kind of an error; its exit code follows from it.
type class int

// The classes. Their codes are in exitcode.go.
const (
	classFailed class = iota
	classRejected
	classExpired
	classUnreadableState
	classRefused
	classLocked
	classInterrupted
)

// problem is an error with its class, its code and the next commands.
type problem struct {
	class class
	view.ProblemDocument
	advice []providers.Advice // shown after Next, with the user's own flags
	err    error              // the cause; nil: none beyond the message
	shown  bool               // people have seen all but the message
}

// Error returns the message.
func (p *problem) Error() string { return p.Message }

// Unwrap returns the cause.
func (p *problem) Unwrap() error { return p.err }

func newProblem(c class, code, message string, next ...string) *problem {
	return &problem{class: c, ProblemDocument: view.ProblemDocument{Code: code, Message: message, Next: next}}
}

// advised adds advice to a problem.
func (p *problem) advised(next []providers.Advice) *problem {
	p.advice = append(p.advice, next...)
	return p
}

// rejected returns the problem of a mistake in the user's command or files.
func rejected(code, message string, next ...string) *problem {
	return newProblem(classRejected, code, message, next...)
}

// stepError is the failure of a step, with the own flags of its run.
type stepError struct {
	err error
	own view.OwnFlags
}

// Error returns the cause's text.
func (e stepError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e stepError) Unwrap() error { return e.err }

// specError is an error that holds the diagnostics of the spec.
type specError struct {
	diags hcl.Diagnostics
	files map[string]*hcl.File
}

// Error returns the summaries of the diagnostics.
func (e *specError) Error() string { return "read the spec: " + summaries(e.diags) }

// brief names the first mistake, and counts the others.
func (e *specError) brief() string {
	text, more := "", 0
	for _, d := range e.diags {
		switch {
		case d.Severity != hcl.DiagError:
		case text != "":
			more++
		default:
			text = d.Summary
			if d.Subject != nil {
				text = fmt.Sprintf("%s:%d: %s", d.Subject.Filename, d.Subject.Start.Line, d.Summary)
			}
		}
	}
	if more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// status is an exit code without a message: the command has shown everything already.
type status struct{ code int }

// Error names the code.
func (s status) Error() string { return "exit with code " + strconv.Itoa(s.code) }

// before is an error of vmctl's own, where the exit code belongs to a program
// that it was asked to run.
type before struct{ err error }

// Error returns the cause's text.
func (b before) Error() string { return b.err.Error() }

// Unwrap returns the cause.
func (b before) Unwrap() error { return b.err }

// silent reports whether the command has shown everything already.
func silent(err error) bool {
	var s status
	return errors.As(err, &s)
}

func diagnosticsOf(err error) (hcl.Diagnostics, map[string]*hcl.File) {
	var e *specError
	if errors.As(err, &e) {
		return e.diags, e.files
	}
	return nil, nil
}

// problemOf returns an error as its reader sees it.
func (a *app) problemOf(err error) view.ProblemDocument {
	shown := a.describe(err)
	var advised state.Advised
	if len(shown.Next) == 0 && errors.As(err, &advised) {
		shown.Next = advised.Next()
	}
	return shown
}

func (a *app) describe(err error) view.ProblemDocument {
	var (
		p        *problem
		failure  *providers.Problem
		spec     *specError
		locked   *state.LockedError
		corrupt  *state.CorruptError
		newer    *state.NewerError
		mismatch *state.MismatchError
		lost     *state.LostLockError
		scope    *planner.ScopeError
		system   *planner.SystemError
	)
	switch {
	case errors.As(err, &p):
		shown := p.ProblemDocument
		shown.Next = slices.Concat(shown.Next, a.ownFlags(planFlags{}).Advice(p.advice))
		return shown
	case errors.As(err, &spec):
		return view.ProblemDocument{Code: "invalid_spec", Message: "the spec has mistakes: " + summaries(spec.diags)}
	case errors.As(err, &corrupt):
		return view.ProblemDocument{Code: "state_corrupt", Message: err.Error()}
	case errors.As(err, &newer):
		return view.ProblemDocument{Code: "state_newer", Message: err.Error()}
	case errors.As(err, &mismatch):
		return view.ProblemDocument{Code: "state_of_another_project", Message: err.Error()}
	case errors.As(err, &locked):
		return view.ProblemDocument{Code: "locked", Message: err.Error()}
	case errors.As(err, &lost):
		next := a.commandLine("lock list", planFlags{}) + " shows who holds it, then " + a.commandLine("plan", planFlags{})
		return view.ProblemDocument{Code: "lock_lost", Message: err.Error(), Next: []string{next}}
	case errors.As(err, &scope):
		return view.ProblemDocument{Code: "scope", Message: err.Error()}
	case errors.As(err, &system):
		return view.ProblemDocument{Code: "one_system", Message: err.Error()}
	case errors.As(err, &failure):
		step := stepError{own: a.ownFlags(planFlags{})}
		_ = errors.As(err, &step) // a failure outside of a run has no scope
		f := view.ProblemOf(failure, step.own)
		f.Message = err.Error()
		return f
	case errors.Is(err, context.Canceled):
		return view.ProblemDocument{Code: "interrupted", Message: "interrupted: " + err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return view.ProblemDocument{Code: "deadline", Message: err.Error()}
	default:
		return view.ProblemDocument{Code: "failed", Message: err.Error()}
	}
}

// summaries returns the summaries of the errors, and the number of those beyond the first ones.
func summaries(diags hcl.Diagnostics) string {
	const most = 20
	var all []string
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			all = append(all, d.Summary)
		}
	}
	if more := len(all) - most; more > 0 {
		all = append(all[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
}

func quoted(s string) string { return strconv.Quote(s) }

// told is an error that people have read already, as a part of something else.
type told struct{ err error }

// Error returns the cause's text.
func (t told) Error() string { return t.err.Error() }

// Unwrap returns the cause.
func (t told) Unwrap() error { return t.err }

// untold returns err without the parts that people have read already, nil if none is left.
func untold(err error) error {
	var rest []error
	for _, e := range parts(err) {
		if _, ok := e.(told); !ok { //nolint:errorlint // parts are looked at one by one
			rest = append(rest, e)
		}
	}
	return errors.Join(rest...)
}

// parts lists the errors that were joined to err, or err alone.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, parts(e)...)
	}
	return all
}

// wholeProblem returns all errors that err joins as one problem: the one that decides the
// exit code, with the messages of the others.
func (a *app) wholeProblem(err error) view.ProblemDocument {
	all := parts(err)
	if t, ok := err.(told); ok { //nolint:errorlint // see parts
		all = parts(t.err)
	}
	first := slices.IndexFunc(all, func(e error) bool { return ExitCode(e) == ExitCode(err) })
	first = max(first, 0)
	whole := a.problemOf(all[first])
	for i, e := range all {
		if i != first {
			whole.Seen = append(whole.Seen, e.Error())
		}
	}
	return whole
}
