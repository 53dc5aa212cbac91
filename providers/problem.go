package providers

import (
	"errors"
	"fmt"
	"slices"
)

// Problem is the reason why a change was refused in the plan, or why a step failed: the only
// error of Steps and Do that carries meaning.
type Problem struct {
	Outcome Outcome
	Code    string   // stable, snake_case: "port_taken"; "": of a refused change
	Seen    []string // observations, a line each
	Next    []Advice
	Err     error
	// Restored says that a replacement failed, and that the object which it replaced is back as it was. The record is, too.
	Restored bool
}

// Refuse returns the problem of a change that cannot be made as its object is now.
func Refuse(reason string, next []Advice) *Problem {
	return &Problem{Outcome: Unsafe, Next: next, Err: errors.New(reason)}
}

// Unread returns the problem of what could not be read: the one in err, or a new one.
func Unread(err error) *Problem {
	unread := Problem{Outcome: Failed}
	if p := (*Problem)(nil); errors.As(err, &p) {
		unread = *p
	}
	unread.Err = err
	return &unread
}

// SeenBefore adds earlier observations to the Problem in err, if there is one.
func SeenBefore(err error, seen []string) error {
	if p := (*Problem)(nil); errors.As(err, &p) {
		p.Seen = append(slices.Clone(seen), p.Seen...)
	}
	return err
}

// Within returns p with words before its cause: "vm.a could not be read: no answer".
func (p *Problem) Within(format string, args ...any) *Problem {
	within := *p
	within.Err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), p)
	return &within
}

// Error returns the cause.
func (p *Problem) Error() string {
	if p.Err == nil {
		return p.Code
	}
	return p.Err.Error()
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }
