// Package fault lets any provider fail as the fault blocks of its attributes ask: before a step or
// an observation, or instead of it. A provider that is a Helper fails in the middle of a step,
// too.
package fault

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/clock"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// The kinds of faults that strike every operation of every provider.
const (
	Fail       = "fail"       // it fails, and nothing was done
	Hang       = "hang"       // it never ends by itself
	Slow       = "slow"       // it takes a delay longer
	Unreadable = "unreadable" // what is there cannot be read
)

// OpObserve is the operation of an observation, which has no step. It writes nothing, so that
// its faults cannot be counted.
const OpObserve = "observe"

// answerLimit is the time after which an observation gives up.
const answerLimit = 5 * time.Second

// Fault is a failure that a provider block asks for.
type Fault struct {
	Op, Kind string
	Address  spec.Address // zero: any
	Times    uint64       // how often it strikes; 0: always
	Delay    time.Duration
	key      string // the name of its count
}

// Helper is a provider that carries out some faults by itself.
type Helper interface {
	// FaultOps lists the operations that it lets fail in each way, by the kinds of faults.
	FaultOps() map[string][]string
	// DoStruck carries out a step that one of these faults strikes.
	DoStruck(ctx context.Context, w providers.Work, log providers.Log, f Fault) (providers.Result, error)
}

// Injected returns the failure of a step that the fault strikes.
func (f Fault) Injected(w providers.Work) *providers.Problem {
	return problem(w, providers.Failed, "fault", "injected fault: %s", f.Kind)
}

func problem(w providers.Work, outcome providers.Outcome, code, format string, args ...any) *providers.Problem {
	err := fmt.Errorf("%s %s: "+format, append([]any{w.Op, w.Address}, args...)...)
	return &providers.Problem{Outcome: outcome, Code: code, Next: providers.Vmctl("plan"), Err: err}
}

// decode reads the faults. ops lists the operations that the provider's own kinds can strike.
func decode(v cty.Value, ops map[string][]string) ([]Fault, error) {
	if !ctyread.Known(v) {
		return nil, nil
	}
	var all []Fault
	same := map[string]int{}
	for i, e := range v.AsValueSlice() {
		f := Fault{Op: ctyread.Text(e, "op"), Kind: ctyread.Text(e, "kind"), Times: ctyread.Uint(e, "times"), Delay: ctyread.Seconds(e, "delay", 0)}
		where := ctyread.Text(e, "address")
		if where != "" {
			var err error
			if f.Address, err = spec.ParseAddress(where); err != nil {
				return nil, fmt.Errorf("fault[%d].address: %w", i, err)
			}
		}
		switch f.Kind {
		case Fail, Hang, Slow, Unreadable:
		default:
			if len(ops[f.Kind]) == 0 {
				return nil, fmt.Errorf("fault[%d]: this provider cannot fail by kind %q", i, f.Kind)
			}
			if !slices.Contains(ops[f.Kind], f.Op) {
				return nil, fmt.Errorf("fault[%d]: kind %q strikes %s, and op is %q", i, f.Kind, strings.Join(ops[f.Kind], ", "), f.Op)
			}
		}
		if f.Op == OpObserve && f.Times != 0 {
			return nil, fmt.Errorf("fault[%d].times: observing writes nothing, so that a fault of op %q cannot be counted: leave times out", i, OpObserve)
		}
		plain := fmt.Sprintf("%s %s %s %d %s", f.Op, f.Kind, where, f.Times, f.Delay)
		same[plain]++
		f.key = fmt.Sprintf("%s #%d", plain, same[plain])
		all = append(all, f)
	}
	return all, nil
}

// observe returns the reason why the fault keeps an observation from seeing anything, "" if it
// does not.
func (f Fault) observe(ctx context.Context) (string, error) {
	switch f.Kind {
	case "":
		return "", nil
	case Hang:
		return fmt.Sprintf("no answer within %s", answerLimit), clock.Sleep(ctx, answerLimit)
	case Slow:
		return "", clock.Sleep(ctx, f.Delay)
	default:
		return "injected fault: " + f.Kind, nil
	}
}

// blind moves the objects that a fault hides from objects to unknowns.
func (w *wrapper) blind(ctx context.Context, inv *providers.Inventory) error {
	var seen []providers.Object
	for _, o := range inv.Objects {
		why := ""
		if o.Owner != nil {
			var err error
			if why, err = w.observing(o.Owner.Address).observe(ctx); err != nil {
				return err
			}
		}
		if why == "" {
			seen = append(seen, o)
			continue
		}
		inv.Unknown = append(inv.Unknown, providers.Unknown{Kind: o.Kind, ID: o.ID, Name: o.Name, Reason: why})
	}
	inv.Objects = seen
	slices.SortStableFunc(inv.Unknown, func(a, b providers.Unknown) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
	})
	return nil
}

// observing returns the fault of an observation of exactly that address; zero: of the host.
func (w *wrapper) observing(a spec.Address) Fault {
	for _, f := range w.faults {
		if f.Op == OpObserve && f.Address == a {
			return f
		}
	}
	return Fault{}
}
