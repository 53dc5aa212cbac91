package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/clock"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// fault is a failure that the provider block asks for.
type fault struct {
	Op, Kind string
	Address  spec.Address // zero: any
	Times    uint64       // how often it strikes; 0: always
	Delay    time.Duration
	key      string // the name of its count
}

// opObserve is the operation of a look, which has no step. A look writes nothing, so that it
// cannot count its faults.
const opObserve = "observe"

func faultsOf(v cty.Value) ([]fault, error) {
	if !ctyread.Known(v) {
		return nil, nil
	}
	var all []fault
	same := map[string]int{}
	for i, e := range v.AsValueSlice() {
		f := fault{Op: ctyread.Text(e, "op"), Kind: ctyread.Text(e, "kind"), Times: ctyread.Uint(e, "times"), Delay: ctyread.Seconds(e, "delay", 0)}
		where := ctyread.Text(e, "address")
		if where != "" {
			var err error
			if f.Address, err = spec.ParseAddress(where); err != nil {
				return nil, fmt.Errorf("fault[%d].address: %w", i, err)
			}
		}
		if ops := faultOps[f.Kind]; ops != nil && !slices.Contains(ops, f.Op) {
			return nil, fmt.Errorf("fault[%d]: kind %q strikes %s, and op is %q", i, f.Kind, strings.Join(ops, ", "), f.Op)
		}
		if f.Op == opObserve && f.Times != 0 {
			return nil, fmt.Errorf("fault[%d].times: looking writes nothing, so that a fault of op %q cannot be counted: leave times out", i, opObserve)
		}
		plain := fmt.Sprintf("%s %s %s %d %s", f.Op, f.Kind, where, f.Times, f.Delay)
		same[plain]++
		f.key = fmt.Sprintf("%s #%d", plain, same[plain])
		all = append(all, f)
	}
	return all, nil
}

func (f fault) strikes(op string, a spec.Address) bool {
	return f.Op == op && (f.Address == spec.Address{} || f.Address == a)
}

// strike finds the fault that strikes a step now, and counts it. Its kind is "" if no fault
// does.
func (p *Provider) strike(op string, a spec.Address) (fault, error) {
	for _, f := range p.faults {
		if !f.strikes(op, a) {
			continue
		}
		if f.Times == 0 {
			return f, nil
		}
		if counted, err := p.count(f); err != nil || counted {
			return f, err
		}
	}
	return fault{}, nil
}

// count uses up one of the times of a fault, also across processes: the process that changes
// objects holds the run lock.
func (p *Provider) count(f fault) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := map[string]uint64{}
	if err := readJSON(p.path(faultsFile), &counts); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if counts[f.key] >= f.Times {
		return false, nil
	}
	counts[f.key]++
	return true, p.write(p.path(faultsFile), counts)
}

// blind returns the reason why a fault keeps a look from seeing a VM, "" if none does.
func (p *Provider) blind(ctx context.Context, a spec.Address) (string, error) {
	for _, f := range p.faults {
		if f.strikes(opObserve, a) && f.Address != (spec.Address{}) {
			return f.strikeObserve(ctx)
		}
	}
	return "", nil
}

// blindHost returns the reason why a fault keeps a look from seeing the host, "" if none
// does.
func (p *Provider) blindHost(ctx context.Context) (string, error) {
	for _, f := range p.faults {
		if f.Op == opObserve && f.Address == (spec.Address{}) {
			return f.strikeObserve(ctx)
		}
	}
	return "", nil
}

func (f fault) strikeObserve(ctx context.Context) (string, error) {
	switch f.Kind {
	case kindHang:
		return fmt.Sprintf("no answer within %s", answerLimit), clock.Sleep(ctx, answerLimit)
	case kindSlow:
		return "", clock.Sleep(ctx, f.Delay)
	default:
		return "injected fault: " + f.Kind, nil
	}
}

// begin makes a fault strike before anything is done.
func (t *task) begin(ctx context.Context) error {
	var err error
	if t.fault, err = t.strike(t.Op, t.Address); err != nil {
		return fail(err, "%s %s", t.Op, t.Address)
	}
	if t.inProcess() {
		return nil
	}
	switch t.fault.Kind {
	case kindHang:
		_ = t.await(ctx, func() error { <-ctx.Done(); return nil }) //nolint:errcheck // its time is over
		return &providers.Problem{
			Outcome: providers.Timeout, Code: "no_answer", Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("%s %s: the host gave no answer within %s", t.Op, t.Address, t.Timeout),
		}
	case kindSlow:
		return t.await(ctx, func() error { return clock.Sleep(ctx, t.fault.Delay) })
	case kindFail:
		return t.injected()
	case kindUnreadable:
		return &providers.Problem{
			Outcome: providers.Failed, Code: "unreadable", Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("%s %s: %s cannot be read: injected fault: %s", t.Op, t.Address, t.Name, t.fault.Kind),
		}
	default:
		return nil
	}
}

// inProcess reports whether the fault strikes in the VM's process: it hangs, or is slow to
// come up.
func (t *task) inProcess() bool {
	return t.Op == opStart && !t.weightless && (t.fault.Kind == kindHang || t.fault.Kind == kindSlow)
}

// injected returns the failure that a fault block asks for.
func (t *task) injected() error {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "fault", Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s %s: injected fault: %s", t.Op, t.Address, t.fault.Kind),
	}
}

// half reports whether only half of the step is to be done.
func (t *task) half() bool { return t.fault.Kind == kindPartial }
