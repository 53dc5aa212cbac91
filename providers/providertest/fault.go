package providertest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/fault"
)

// RunFaults tests that faults wrap the provider: the suite passes under the wrapper, and each
// fault that needs no help of the provider strikes before its step, once.
func RunFaults(t *testing.T, h Harness) {
	elsewhere := cty.StringVal("vm.elsewhere")
	t.Run("the suite", func(t *testing.T) {
		Run(t, Harness{New: func(t *testing.T) *World {
			return faulty(t, h.New(t), faultBlock("define", fault.Fail, elsewhere, cty.NumberIntVal(1)))
		}})
	})
	for _, op := range []string{"define", "start", "stop", "delete"} {
		for _, kind := range []string{fault.Fail, fault.Unreadable, fault.Hang, fault.Slow} {
			t.Run(op+" "+kind, func(t *testing.T) {
				struck(newStage(t, faulty(t, h.New(t), faultBlock(op, kind, cty.NullVal(cty.String), cty.NumberIntVal(1)))), op, kind)
			})
		}
	}
	t.Run("observe", func(t *testing.T) { blinded(newStage(t, faulty(t, h.New(t)))) })
}

func faultBlock(op, kind string, address, times cty.Value) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"op": cty.StringVal(op), "kind": cty.StringVal(kind), "address": address, "times": times, "delay": cty.NumberFloatVal(0.001),
	})
}

// faulty returns the world with its provider wrapped, and with faults.
func faulty(t *testing.T, w *World, faults ...cty.Value) *World {
	counts, open, kinds := filepath.Join(t.TempDir(), "faults"), w.Type.Open, w.Type.Kinds
	w.Type.Open = func(ctx context.Context, s providers.Settings) (providers.Provider, error) {
		p, err := open(ctx, s)
		if err != nil {
			return nil, err
		}
		return fault.Wrap(p, s, kinds, counts)
	}
	w.strike(faults...)
	return w
}

func (w *World) strike(faults ...cty.Value) {
	attrs := w.Settings.Attrs
	if attrs == cty.NilVal {
		attrs = cty.EmptyObjectVal
	}
	w.Settings.Attrs = with(attrs, "fault", cty.TupleVal(faults))
}

// struck makes and removes a VM. The fault strikes the first step of an operation, which changes
// nothing then; the same step succeeds afterwards.
func struck(s *stage, op, kind string) {
	code := map[string]string{fault.Fail: "fault", fault.Unreadable: "unreadable", fault.Hang: "no_answer", fault.Slow: "no_answer"}[kind]
	dev, strikes := s.actor("dev"), 0
	for _, action := range []providers.Action{providers.Create, providers.Destroy} {
		c, expect := dev.change(action), ""
		if c.Object != nil {
			expect = c.Object.Fingerprint
		}
		for _, step := range dev.steps(c) {
			w := dev.work(c, step, expect)
			if step.Op == op {
				strikes++
			}
			if step.Op == op {
				ctx, cancel := context.WithCancel(s.t.Context())
				if kind == fault.Hang || kind == fault.Slow {
					cancel()
				}
				before := s.Traces()
				if _, failure := s.do(ctx, w); failure == nil || failure.Code != code {
					s.t.Errorf("%s under the fault: %v, want a failure with the code %s", op, failure, code)
				}
				cancel()
				same(s.t, "what there is after the fault", before, s.Traces())
				s.reopen()
			}
			r, failure := s.do(s.t.Context(), w)
			if failure != nil {
				s.t.Fatalf("%s after the fault: %v", step.Op, failure)
			}
			expect = r.Fingerprint
			if r.Values != cty.NilVal {
				dev.values = r.Values
			}
		}
	}
	if strikes != 1 {
		s.t.Errorf("there were %d steps to strike, want 1", strikes)
	}
}

// blinded observes under faults: of one address, of the host, and slowly.
func blinded(s *stage) {
	dev, other := s.actor("dev"), s.actor("other")
	dev.create()
	other.create()
	under := func(f cty.Value) providers.Inventory {
		s.strike(f)
		s.reopen()
		return s.observe(dev.known(), other.known())
	}
	never, host := cty.NullVal(cty.Number), cty.NullVal(cty.String)
	inv := under(faultBlock(fault.OpObserve, fault.Unreadable, cty.StringVal("vm.dev"), never))
	if len(inv.Objects) != 1 || inv.Objects[0].ID != other.id || len(inv.Unknown) != 1 || inv.Unknown[0].ID != dev.id {
		s.t.Errorf("with vm.dev hidden, %+v is seen, and %+v is unknown", inv.Objects, inv.Unknown)
	}
	inv = under(faultBlock(fault.OpObserve, fault.Fail, host, never))
	if len(inv.Partial) != len(s.Type.Kinds) || len(inv.Objects) > 0 {
		s.t.Errorf("of a hidden system, %+v is seen, and %v is partial", inv.Objects, inv.Partial)
	}
	inv = under(faultBlock(fault.OpObserve, fault.Slow, host, never))
	if len(inv.Objects) != 2 || len(inv.Partial) > 0 {
		s.t.Errorf("of a slow system, %+v is seen, and %v is partial", inv.Objects, inv.Partial)
	}
}
