package executor_test

import (
	"context"
	"errors"

	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/providers"
	machinekit "vmctl/providers/machine"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

// boxes is a provider of boxes inside of a VM, in memory. Its type reports whether a box is sealed, and not whether it
// is lit: a wait for that would never end.
type boxes struct {
	there map[providers.ID]*providers.Object
	seal  condition.Report // the report when a box is opened; no status: none
	done  []string
}

func boxType() providers.Type {
	live := func(cty.Value, cty.Value, bool) providers.Verdict { return providers.Verdict{Applies: providers.Live} }
	return providers.Type{
		Name: "boxes", Produces: map[spec.Kind][]string{box.Kind: {box.Sealed}},
		Kinds: map[spec.Kind]map[string]providers.Attribute{box.Kind: {
			"in": {}, "label": {}, "running": {Judge: live}, "content": {Judge: live}, "paint": {Judge: live}, "id": {Computed: true},
		}},
	}
}

func (b *boxes) Close() error { return nil }

func (b *boxes) Observe(context.Context, providers.Query) (providers.Inventory, error) {
	var inv providers.Inventory
	for _, o := range b.there {
		inv.Objects = append(inv.Objects, *o)
	}
	return inv, nil
}

func (b *boxes) Steps(c providers.Change) ([]providers.Step, error) {
	var steps []providers.Step
	add := func(s providers.Step) {
		s.Object, s.Name = c.ID, c.Name
		steps = machinekit.Append(steps, c, s)
	}
	open := func() {
		add(providers.Step{Op: "open", Phase: providers.PhaseUp})
		add(providers.Step{Op: "wait_sealed", Phase: providers.PhaseReady, Condition: box.Sealed})
		add(providers.Step{Op: "wait_lit", Phase: providers.PhaseReady, Condition: box.Lit})
	}
	switch c.Action {
	case providers.Create:
		add(providers.Step{Op: "make", Phase: providers.PhaseMake})
		open()
	case providers.Update:
		if c.Alters() {
			add(providers.Step{Op: "write", Phase: providers.PhaseChange})
		}
	case providers.Start:
		open()
	case providers.Release:
		add(providers.Step{Op: "close", Phase: providers.PhaseRelease})
		if c.Want != cty.NilVal {
			add(providers.Step{Op: "open", Phase: providers.PhaseResume})
		}
	case providers.RestartIt, providers.ReplaceIt, providers.Destroy, providers.Stop, providers.Adopt, providers.Import,
		providers.Forget, providers.Recover, providers.NoOp:
	}
	return steps, nil
}

func (b *boxes) Do(_ context.Context, w providers.Work, _ providers.Log) (providers.Result, error) {
	b.done = append(b.done, w.Op)
	r := providers.Result{ID: w.Object, How: providers.Done, Fingerprint: "a box"}
	no, yes := false, true
	switch w.Op {
	case "make":
		b.there[w.Object] = &providers.Object{
			Kind: box.Kind, ID: w.Object, Name: w.Name, Attrs: w.Want, Fingerprint: "a box", Running: &no, State: providers.StateOff,
			Owner: &providers.Mark{ID: project.ID, Project: project.Name, Address: w.Address, Of: w.Object, Generation: w.Generation},
		}
	case "write":
		b.there[w.Object].Attrs, b.there[w.Object].Owner.Generation = w.Want, w.Generation
	case "open":
		b.there[w.Object].Running, b.there[w.Object].State, r.Running = &yes, providers.StateRunning, &yes
		if b.seal.Status != "" {
			r.Conditions = []condition.Report{b.seal, {Type: box.Lit, Status: condition.True}}
		}
	case "close":
		b.there[w.Object].Running, b.there[w.Object].State, r.Running = &no, providers.StateOff, &no
	case "wait_sealed":
	default:
		return r, errors.New("nothing can wait for this")
	}
	return r, nil
}
