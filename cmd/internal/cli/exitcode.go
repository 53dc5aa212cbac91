package cli

import (
	"context"
	"errors"
	"slices"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/state"
)

// precedence lists the exit codes by rank, for when several things went wrong.
func precedence() []int { return []int{130, 5, 7, 6, 4, 3, 1} }

// ExitCode returns the exit code of an error. Of several codes the first in the precedence
// counts.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	codes := codesOf(err)
	var (
		done status
		own  before
	)
	switch {
	case errors.As(err, &done):
		return done.code
	case errors.As(err, &own) && !slices.Contains(codes, classInterrupted.code()):
		return 255
	}
	for _, code := range precedence() {
		if slices.Contains(codes, code) {
			return code
		}
	}
	return 1
}

// codesOf lists the exit codes of all errors that err joins or wraps.
func codesOf(err error) []int {
	if c, ok := classOf(err); ok {
		return []int{c.code()}
	}
	switch wrapped := err.(type) { //nolint:errorlint // the tree is walked here, one node at a time
	case interface{ Unwrap() []error }:
		var codes []int
		for _, e := range wrapped.Unwrap() {
			codes = append(codes, codesOf(e)...)
		}
		return codes
	case interface{ Unwrap() error }:
		if inner := wrapped.Unwrap(); inner != nil {
			return codesOf(inner)
		}
	}
	return nil
}

// classOf returns the class of one error, without the errors that it wraps, and whether it
// has a class of its own.
func classOf(err error) (class, bool) {
	switch e := err.(type) { //nolint:errorlint // the tree is walked by codesOf, one node at a time
	case *problem:
		return e.class, true
	case *specError, *planner.ScopeError, *planner.SystemError:
		return classRejected, true
	case *state.CorruptError, *state.NewerError, *state.MismatchError:
		return classUnreadableState, true
	case *state.LockedError, *state.LostLockError:
		return classLocked, true
	case *providers.Problem:
		return outcomeClass(e.Outcome), true
	}
	switch err { //nolint:errorlint // see above
	case context.Canceled:
		return classInterrupted, true
	case context.DeadlineExceeded:
		return classExpired, true
	default:
		return classFailed, false
	}
}

func outcomeClass(o providers.Outcome) class {
	switch o {
	case providers.Failed:
		return classFailed
	case providers.Timeout:
		return classExpired
	case providers.Unsafe, providers.Stale:
		return classRefused
	default:
		return classFailed
	}
}

// code returns the exit code of a class, as in DESIGN.md's table. 0, 2 and the statuses of
// programs in a guest are no errors of vmctl and have no class.
func (c class) code() int {
	switch c {
	case classFailed:
		return 1
	case classRejected:
		return 3
	case classExpired:
		return 4
	case classUnreadableState:
		return 5
	case classRefused:
		return 6
	case classLocked:
		return 7
	case classInterrupted:
		return 130
	default:
		panic("no exit code for this class")
	}
}
