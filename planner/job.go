package planner

import (
	"fmt"
	"slices"
	"strings"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// isManual reports whether plans leave a resource alone: its user runs it.
func isManual(r *spec.Resource) bool {
	return natures[r.Address.Kind].manual && ctyread.Text(r.Policy, "run") != "once"
}

// planned returns the resource of an address, if plans have to do with it.
func (d *differ) planned(a spec.Address) (spec.Resource, bool) {
	r, inSpec := d.config.Resource(a)
	return r, inSpec && !isManual(&r)
}

// isLeft reports whether plans leave an address alone. One with a record is not: that is to be forgotten.
func (d *differ) isLeft(a spec.Address) bool {
	r, inSpec := d.config.Resource(a)
	_, recorded := d.state.Records[a]
	return inSpec && !recorded && isManual(&r)
}

// outlives reports whether what is left of the objects of a kind is kept when their resources go.
func outlives(kind spec.Kind) bool {
	shape, _ := spec.Shape(kind)
	return shape.In != nil && shape.In.Outlives
}

// jobBlocked looks at a job that the plan would run: whether its workspace can be entered, and whether it may have run before.
func (d *differ) jobBlocked(c *Change) {
	if natures[c.Kind].runsIn == "" || c.Blocked != nil {
		return
	}
	d.mayHaveRun(c)
	if c.Action != providers.Create && (c.Action != providers.Update || !runsAgain(c.Edits)) {
		return
	}
	work := d.decided[workplace(c.Kind, c.Needs)]
	if work == nil {
		return
	}
	for _, around := range work.Around {
		if d.staysOff([]spec.Address{around}) {
			c.Blocked = &Block{Cause: CauseOff, Problem: providers.Refuse(fmt.Sprintf("%s, in which it would run, is off", around), startFirst(around))}
			return
		}
	}
}

// runsAgain reports whether edits make a job due again. Its environment counts for its next run alone.
func runsAgain(edits []providers.Edit) bool {
	return slices.ContainsFunc(edits, func(e providers.Edit) bool {
		name, _, _ := strings.Cut(e.Path, ".")
		return name != "env"
	})
}

// mayHaveRun keeps a job from running whose workspace is older than the state: it may have run before, and the records of that
// were lost with the state.
func (d *differ) mayHaveRun(c *Change) {
	if c.Action != providers.Create || c.Record != nil && !c.Record.Reserved {
		return
	}
	a := workplace(c.Kind, c.Needs)
	work := d.decided[a]
	if work == nil || work.Object == nil || work.Record != nil && !work.Record.Found {
		return
	}
	c.Action, c.Reason = providers.NoOp, fmt.Sprintf("it may have run before: %s is older than the state", a)
	d.find(providers.Finding{
		Kind: providers.FindNotRun, Address: c.Address, Object: c.Name,
		Evidence: []string{fmt.Sprintf("%s was there before this state, and no record says whether %s has run in it", a, c.Address)},
		Action:   "not run", Next: providers.SayVmctl("run it: ", "job", "run", c.Address.String()),
	})
}
