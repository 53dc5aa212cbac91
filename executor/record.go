package executor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// record returns the new record of a step's address now that the step is done; false: the step
// left no object or did not concern the record.
func (x *execution) record(step planner.Step, c *planner.Change, r providers.Result) (state.Record, bool) {
	old, existed := x.records[step.Address]
	switch {
	case step.Op == planner.OpSettle, step.Op == planner.OpForget:
		return state.Record{}, false
	case r.Gone && (c.Action == providers.Destroy || c.Action == providers.Forget || !existed):
		return state.Record{}, false
	case c.Action == providers.Destroy && !existed: // an object that is about to go needs no record of its own
		return state.Record{}, false
	}
	if !existed {
		old = state.Record{Kind: c.Kind, Values: c.Prior, Policy: c.Policy, Generation: c.Generation}
		old.Found = c.Object != nil && planner.IsInhabited(c.Kind)
		if c.Action == providers.Import && len(spec.InsideOf(c.Kind)) > 0 {
			old.Found = x.hasForgottenWork()
		}
		if c.Action == providers.Create {
			old.Values = cty.EmptyObjectVal
		}
	}
	n := old
	n.Found = old.Found && step.Phase != providers.PhaseMake
	n.Reserved = old.Reserved && step.Phase == providers.PhaseReserve
	if old.Reserved && c.Object != nil { // an earlier run made it, and ended before it wrote that down
		n.Generation = max(n.Generation, c.Generation)
	}
	at := c.Aim()
	if step.Phase.Sinks() {
		at = c.Place
	}
	n.Provider, n.Settings, n.Uses, n.Inside = c.Provider, at.Settings, c.Needs, at.Inside
	if existed && c.To != nil && step.Phase.Sinks() { // it is still where it was
		n.Provider = old.Provider
	}
	n.ID, n.Name = cmp.Or(string(r.ID), string(c.ID)), c.Name
	if c.Action == providers.ReplaceIt && step.Phase.Sinks() {
		n.ID, n.Name = old.ID, old.Name
	}
	if recordsWanted(step) {
		n = withApplied(n, c, x.wants[step.ID])
		n.Provisions = x.provisions(n, step, c)
	}
	if step.Op == planner.OpRecord && !x.hasProviderStep(step.Change) {
		n = x.withObserved(n, old.Generation, c)
	}
	n.Values = merge(n.Values, r.Values)
	if r.Running != nil {
		n.Values = withAttribute(n.Values, "running", cty.BoolVal(*r.Running))
	}
	if !step.Record && c.Action != providers.Release && !x.writesSpec(step.Change) {
		n.Generation, n.Spec = max(n.Generation, c.Generation), cmp.Or(c.Spec, n.Spec)
	}
	if step.Provision != "" && r.How != providers.NotNeeded {
		n.Provisions = x.ran(n, step, r.Digest)
	}
	switch step.Phase {
	case providers.PhaseUp:
		if r.How != providers.AlreadyTrue {
			n.Starts++
		}
	case providers.PhaseDown:
		if r.How == providers.Graceful || r.How == providers.Forced {
			n.LastStop = string(r.How)
		}
	case providers.PhasePrepare, providers.PhaseRecover, providers.PhaseRelease, providers.PhaseFree, providers.PhaseRemove, providers.PhaseReserve,
		providers.PhaseMake, providers.PhaseChange, providers.PhaseReady, providers.PhaseResume, providers.PhaseTidy:
	}
	return x.withConditions(n, old, step, r), true
}

// hasForgottenWork reports whether the record of an object in which people work was removed by hand: it may be inside of an object that is
// imported. Otherwise vmctl has made nothing inside of that.
func (x *execution) hasForgottenWork() bool {
	for _, a := range x.Journal.Snapshot().Forgotten {
		if shape, _ := spec.Shape(a.Kind); shape.Work {
			return true
		}
	}
	return false
}

// writesSpec reports whether a step of a change writes its wanted values into the record.
func (x *execution) writesSpec(change int) bool {
	return slices.ContainsFunc(x.steps[change], func(i int) bool { return recordsWanted(x.Plan.Steps[i]) })
}

// withApplied returns a record after the wanted values of a change were applied. want is NilVal if
// they are not known.
func withApplied(r state.Record, c *planner.Change, want cty.Value) state.Record {
	if want != cty.NilVal {
		running := runningOf(r.Values, c.Action)
		r.Values, r.Digests = merge(computedOf(r.Values, want), want), settingDigests(r.Digests)
		r.Values = withAttribute(r.Values, "running", running)
		r.Values = withAttribute(r.Values, "name", cty.StringVal(r.Name)) // for references to a name that vmctl chose
	}
	r.Policy, r.Generation, r.Replaced = c.Policy, c.Generation, c.Replaced
	r.Spec = cmp.Or(c.Spec, planner.SpecDigest(want, c.Policy))
	return r
}

// refreshRecords updates the records of objects that another data directory has brought to the
// wanted state.
func (x *execution) refreshRecords(ctx context.Context) error {
	var entries []state.Entry
	for i := range x.Plan.Changes {
		c := &x.Plan.Changes[i]
		r, recorded := x.records[c.Address]
		if !c.Behind || !recorded {
			continue
		}
		r.Uses, r.Name = c.Needs, c.Name
		before := r.Generation
		r = x.withObserved(withApplied(r, c, c.Change.Want), before, c)
		r.Provisions = x.provisions(r, planner.Step{}, c)
		r = x.withheld(r)
		entries = append(entries, state.Entry{Run: x.ID, At: x.Now().UTC(), Kind: state.Note, Op: opRefreshed, Address: c.Address, Put: &r})
		x.remember(c.Address, r)
	}
	if len(entries) == 0 {
		return nil
	}
	if err := x.Journal.Append(context.WithoutCancel(ctx), entries...); err != nil {
		return fmt.Errorf("bring records up to date: %w", err)
	}
	return nil
}

// opRefreshed is the Op of the journal entries that refreshRecords writes.
const opRefreshed = "caught_up"

// keepReplaced remembers the record of the object that a change replaces.
func (x *execution) keepReplaced(i int) {
	step := x.Plan.Steps[i]
	if r, recorded := x.records[step.Address]; recorded && x.Plan.Changes[step.Change].Action == providers.ReplaceIt {
		x.replaced[step.Change] = r
	}
}

// reservation returns the record of an object that is about to be made, so that vmctl finds the
// object and its remains after a crash.
func (x *execution) reservation(i int) state.Record {
	step := x.Plan.Steps[i]
	c := &x.Plan.Changes[step.Change]
	r := x.records[step.Address]
	at := c.Aim()
	r.Kind, r.Provider, r.Settings, r.Uses, r.Inside = c.Kind, c.Provider, at.Settings, c.Needs, at.Inside
	r.ID, r.Name, r.Replaced, r.Policy = string(step.Object), step.Name, c.Replaced, c.Policy
	values := map[string]cty.Value{"running": cty.False, "name": cty.StringVal(step.Name)}
	maps.Copy(values, c.Chosen())
	r.Values = cty.ObjectVal(values)
	r.Reserved, r.LastAction, r.Conditions, r.Digests, r.Provisions = true, nil, nil, settingDigests(r.Digests), nil
	if shape, _ := spec.Shape(c.Kind); !shape.Work { // its saves keep the addresses that it had
		r.Was = nil
	}
	return r
}

// hasProviderStep reports whether a change has a step of a provider: after that step, the object
// may differ from the one that the plan saw.
func (x *execution) hasProviderStep(change int) bool {
	return slices.ContainsFunc(x.steps[change], func(i int) bool { return !x.Plan.Steps[i].Record })
}

// withObserved returns a record with the values of the object that the plan saw. before is the generation of the record
// until now.
func (x *execution) withObserved(r state.Record, before uint64, c *planner.Change) state.Record {
	o := c.Object
	r.Replaced, r.Generation = c.Replaced, c.Generation
	if o.Owner != nil {
		r.Generation = max(r.Generation, o.Owner.Generation)
	}
	if c.Change.Want != cty.NilVal {
		r.Values = merge(r.Values, computedOf(o.Attrs, c.Change.Want))
	}
	if o.Running != nil {
		r.Values = withAttribute(r.Values, "running", cty.BoolVal(*o.Running))
	}
	return x.withFoundConditions(r, c, before)
}

// recordsWanted reports whether the wanted values go into the record once a step is done.
func recordsWanted(step planner.Step) bool {
	return step.Op == planner.OpRecord || step.Phase == providers.PhaseMake || step.Phase == providers.PhaseChange
}

// runningOf returns the run state for a record until a step confirms another one.
func runningOf(old cty.Value, a providers.Action) cty.Value {
	if a == providers.Create || a == providers.ReplaceIt || old == cty.NilVal || !old.Type().HasAttribute("running") {
		return cty.False
	}
	return old.GetAttr("running")
}

// computedOf returns the attributes of old that want does not have.
func computedOf(old, want cty.Value) cty.Value {
	m := map[string]cty.Value{}
	if old != cty.NilVal && old.Type().IsObjectType() && !old.IsNull() {
		for name, v := range old.AsValueMap() {
			if !want.Type().HasAttribute(name) {
				m[name] = v
			}
		}
	}
	return cty.ObjectVal(m)
}

// merge returns an object with the attributes of both values. The attributes of over count before
// those of base.
func merge(base, over cty.Value) cty.Value {
	m := map[string]cty.Value{}
	for _, v := range []cty.Value{base, over} {
		if v != cty.NilVal && !v.IsNull() && v.Type().IsObjectType() {
			maps.Copy(m, v.AsValueMap())
		}
	}
	return cty.ObjectVal(m)
}

func withAttribute(v cty.Value, name string, value cty.Value) cty.Value {
	return merge(v, cty.ObjectVal(map[string]cty.Value{name: value}))
}
