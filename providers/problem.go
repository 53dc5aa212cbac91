package providers

import "errors"

// Problem is the reason why a change was refused in the plan, or why a step failed: the only
// error of Steps and Do that carries meaning.
type Problem struct {
	Outcome Outcome
	Code    string   // stable, snake_case: "port_taken"; "": of a refused change
	Seen    []string // observations, a line each
	Next    []Advice
	Err     error
}

// Refuse returns the problem of a change that cannot be made as its object is now.
func Refuse(reason string, next []Advice) *Problem {
	return &Problem{Outcome: Unsafe, Next: next, Err: errors.New(reason)}
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
