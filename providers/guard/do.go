package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

// Task is one step on one object, as far as systems differ.
type Task interface {
	// Guard names the step, its project and the system's words for the object.
	Guard() Guard
	// Look reads the object that the step is about. nil: it does not exist.
	Look(ctx context.Context) (*Seen, error)
	// Values reads the computed attributes of the object that Look found.
	Values(ctx context.Context) (map[string]cty.Value, error)
	// Verb returns the system's part of the step's operation. It panics if it does not know
	// that operation. Look was called before.
	Verb() (Verb, error)
}

// Verb is a system's part of one operation.
type Verb struct {
	Need Need // what the object has to be before Act
	// Done returns the outcome if the goal of the step is true already, nil if it is not. The
	// object is the step's own then, and perhaps not as expected: Done may finish what an
	// earlier attempt began (write the mark, remove remains). nil: the goal is never true.
	Done func(ctx context.Context) (*Outcome, error)
	Act  func(ctx context.Context) (*Outcome, error)
	// Check looks at the object as Look found it after the step. nil: any object will do.
	Check func(ctx context.Context) error
}

// Need says what the object of a step has to be before the step acts.
type Need int

// The needs of an operation.
const (
	Present  Need = iota // it exists, exactly as expected
	Expected             // it is exactly as expected, also if it is to be absent
	Making               // it is absent, as expected, or half made
	Removing             // it is exactly as expected, or gone already
)

// Outcome tells what came of a step.
type Outcome struct {
	How      providers.How
	Evidence []string
	// NotGone says that an object which Look does not find is not gone: it is not made yet, or
	// has lost its ID with its mark.
	NotGone bool
}

// Did returns the outcome of a step.
func Did(how providers.How, evidence ...string) *Outcome {
	return &Outcome{How: how, Evidence: evidence}
}

// If returns the Done of a verb whose goal is true if is says so.
func If(is func() bool, why string) func(context.Context) (*Outcome, error) {
	return func(context.Context) (*Outcome, error) {
		if !is() {
			return nil, nil
		}
		return Did(providers.AlreadyTrue, why), nil
	}
}

// lookLimit limits the reading of an object after a step. What was done is reported even if the
// time of the step is over.
const lookLimit = time.Minute

// Do carries out a step: it acts only on an object that is the step's own and as expected, and
// reads the object again afterwards.
func Do(ctx context.Context, t Task) (providers.Result, error) {
	g := t.Guard()
	now, err := t.Look(ctx)
	if err != nil {
		return providers.Result{}, err
	}
	if err := g.Mine(now); err != nil {
		return providers.Result{}, err
	}
	v, err := t.Verb()
	if err != nil {
		return providers.Result{}, err
	}
	var did *Outcome
	if v.Done != nil {
		if did, err = v.Done(ctx); err != nil {
			return providers.Result{}, err
		}
	}
	if did == nil {
		if err := g.check(v.Need, now); err != nil {
			return providers.Result{}, err
		}
		if did, err = v.Act(ctx); err != nil {
			return providers.Result{}, err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookLimit)
	defer cancel()
	return g.result(ctx, t, v, *did)
}

func (g Guard) check(need Need, now *Seen) error {
	switch {
	case need == Making && now != nil, need == Removing && now == nil:
		return nil
	case need == Present:
		return g.There(now)
	default:
		return g.Expected(now)
	}
}

// result reads the object once more.
func (g Guard) result(ctx context.Context, t Task, v Verb, did Outcome) (providers.Result, error) {
	r := providers.Result{ID: g.Work.Object, How: did.How, Evidence: did.Evidence}
	now, err := t.Look(ctx)
	if err != nil {
		return providers.Result{}, err
	}
	if v.Check != nil {
		if err := v.Check(ctx); err != nil {
			return providers.Result{}, err
		}
	}
	if now == nil {
		r.Gone = !did.NotGone
		return r, nil
	}
	values, err := t.Values(ctx)
	if err != nil {
		return providers.Result{}, err
	}
	r.ID, r.Values, r.Running, r.Fingerprint = now.ID, cty.ObjectVal(values), now.Running, now.Fingerprint
	return r, nil
}

// Driver does the steps of a provider.
type Driver interface {
	// Begin prepares a step. end is called when the step is over, after a panic too.
	Begin(ctx context.Context, w providers.Work, log providers.Log) (t Task, end func() error, err error)
	// Failure returns a failure with err as its cause.
	Failure(err error, format string, args ...any) *providers.Problem
}

// NoEnd is the end of a step that holds nothing.
func NoEnd() error { return nil }

// Run carries out a step of a driver. Its error is a *providers.Problem.
func Run(ctx context.Context, d Driver, w providers.Work, log providers.Log) (r providers.Result, err error) {
	t, end, err := d.Begin(ctx, w, log)
	if err != nil {
		return providers.Result{}, AsFailure(err, d.Failure, fmt.Sprintf("%s %s", w.Op, w.Address))
	}
	defer func() { // also after a panic: what the step holds would keep out all later steps
		if err = errors.Join(err, end()); err != nil {
			r, err = providers.Result{}, AsFailure(err, d.Failure, fmt.Sprintf("%s %s", w.Op, w.Address))
		}
	}()
	return Do(ctx, t)
}
