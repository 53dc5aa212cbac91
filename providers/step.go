package providers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/spec"
)

// Words are the words for a step: as it runs ("starting"), and once it is done ("started").
type Words struct{ Doing, Done string }

// Step is one call to one provider. It is pure data: no secret, no unknown.
type Step struct {
	Op      string
	Words   Words // empty: Op tells enough
	Phase   Phase
	Address spec.Address
	Object  ID
	Name    string
	Imports bool // the object gets its first mark: the step may act on it while it bears none
	Args    Args // nil: none
	// Condition is the condition that the step waits for, in PhaseReady; "": none. It is true once the
	// step has ended well.
	Condition string
	// Provision is the name of the script that the step runs in the object; "": it runs none.
	Provision string
	AtStart   bool // skip the step if the object does not start
	// Saves says that the step saves the work that exists only in the object, and fails unless all of it is saved: the steps
	// after it may remove the object.
	Saves   bool
	Checks  bool // the step fails if there is work that exists only in the object
	Fresh   bool // no run of the script is known to have begun: an earlier one in the object does not count
	Class   Class
	Risk    Risk
	Timeout time.Duration
	Frees   []Claim
	Takes   []Claim
	Leaves  []string // remains that an interruption may leave, in words
	After   []int    // indices of steps of the same change
}

// Args holds the arguments of a step that only its provider reads.
type Args interface {
	// Words returns the name and the value of each argument, for a detailed plan.
	Words() [][2]string
}

// Work is a Step with the facts that are only known at apply time.
type Work struct {
	Step
	Expect      string                // fingerprint of the object; "": it must be absent
	Prior, Want cty.Value             // wholly known
	Uses        map[spec.Address]Used // the resources that Want refers to, as they are now
	Policy      cty.Value
	Generation  uint64
	Replaced    int
	Starts      int            // how often vmctl has started the object
	Digest      string         // of the script of Provision and its variables
	Was         []spec.Address // earlier addresses that the mark of the object may name
	KeepLogs    bool           // the logs of an object that is removed are kept
	// Mask replaces the secrets in a text that is kept. nil: there are none.
	Mask func(text string) string
	// Halt is closed when no further change begins, for example after the first Ctrl-C. A
	// step still ends safely; nil: never closed.
	Halt <-chan struct{}
}

// ErrHalted is the cause of the end of a context of UntilHalt.
var ErrHalted = errors.New("interrupted")

// UntilHalt returns a context that ends with ctx, or when no further change begins. It is for
// work that a later run can continue. Call stop when the work is over.
func (w Work) UntilHalt(ctx context.Context) (until context.Context, stop func()) {
	until, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-w.Halt:
			cancel(ErrHalted)
		case <-until.Done():
		}
	}()
	return until, func() { cancel(nil) }
}

// Bears reports whether a mark that names a belongs to this work's object: a is its address,
// or an earlier one.
func (w Work) Bears(a spec.Address) bool { return a == w.Address || slices.Contains(w.Was, a) }

// Result holds the outcome of a step.
type Result struct {
	ID          ID        // of the object, for the record; "": the step's own
	Values      cty.Value // computed attributes that became known; NilVal: none
	Gone        bool      // the object no longer exists
	Running     *bool     // the run state that was confirmed; nil: the step does not concern it
	Fingerprint string    // of the object afterwards; "" when Gone
	How         How
	Evidence    []string
	Digest      string // of a step with a script: that of the script that ran (Work.Digest); "": the step's own
	// Conditions are further reports about conditions that the type produces, as the step found them for
	// the spec that it was given.
	Conditions []condition.Report
}

// Progress is one line of text about a running step, or a report about a condition.
type Progress struct {
	Text string
	// Condition is recorded at once, so that others see it while the step runs on. If the step waits for
	// this condition, a report that ends a wait ends the step: its context is cancelled. nil: no report.
	Condition *condition.Report
}

// Log receives progress. It may be called from any goroutine of the step and
// never blocks for long.
type Log func(Progress)
