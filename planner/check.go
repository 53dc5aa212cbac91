package planner

import (
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// checks evaluates the conditions of the spec with the values that objects have once the plan is
// carried out, as far as these are known. A bad one is a finding, unless it blocks its change.
func (d *differ) checks() []spec.Check {
	if d.options.Destroy || d.isPower() || len(d.options.Unlock) > 0 {
		return nil
	}
	values := map[spec.Address]cty.Value{}
	for a, r := range d.state.Records {
		if c := d.decided[a]; c == nil || c.Action == providers.NoOp {
			values[a] = r.Values
		}
	}
	for a, v := range d.known {
		if c := d.decided[a]; c.Action != providers.Destroy && c.Action != providers.Forget {
			values[a] = v
		}
	}
	all := d.config.Checks(values)
	for _, c := range all {
		if change := d.decided[c.Address]; c.IsBad() && (change == nil || change.Blocked == nil) {
			d.find(failedCheck(c))
		}
	}
	return all
}

func failedCheck(c spec.Check) providers.Finding {
	return providers.Finding{Kind: providers.FindCheck, Address: c.Address, Evidence: []string{evidenceOf(c)}}
}

// evidenceOf says in words why a condition is bad.
func evidenceOf(c spec.Check) string {
	text := c.Message
	if c.Status == spec.CheckError {
		text = "it cannot be evaluated: " + text
	}
	if c.Kind != spec.Assert {
		text = fmt.Sprintf("%s: %s", c.Kind, text)
	}
	return text
}

// observedChecks returns the assertions and postconditions that are bad with the values that objects really have.
func observedChecks(config *spec.Config, d Delta, s *state.Snapshot) []DriftItem {
	values := map[spec.Address]cty.Value{}
	for i := range d.Changes {
		c := &d.Changes[i]
		record, recorded := s.Records[c.Address]
		if before := c.Before(); recorded && before != cty.NilVal {
			all := map[string]cty.Value{}
			maps.Copy(all, attributesOf(record.Values))
			maps.Copy(all, attributesOf(before))
			values[c.Address] = cty.ObjectVal(all)
		}
	}
	var bad []DriftItem
	for _, c := range config.ObservedChecks(values) {
		if c.IsBad() && c.Kind != spec.Precondition { // that is asked of changes
			bad = append(bad, DriftItem{Kind: providers.FindCheck, Address: c.Address, Departure: Departure{Evidence: evidenceOf(c)}})
		}
	}
	return bad
}

// conditions blocks a change whose preconditions do not hold, as far as they are known, and one whose postconditions are known
// not to hold afterwards: no other change may rest on it.
func (d *differ) conditions(c *Change) {
	if c.Want == nil || c.Blocked != nil || d.isPower() || len(d.options.Unlock) > 0 || d.options.Revert[c.Address] || !d.scope[c.Address] {
		return
	}
	all := d.config.Conditions(c.Address, d.known)
	acts := c.Alters() || c.isDisruptive() || c.Action == providers.Import
	c.Checked = len(all) > 0 && acts
	for _, one := range all {
		if one.Kind == spec.Precondition && one.Status == spec.CheckUnknown {
			c.Undecided = acts
		}
		if !one.IsBad() {
			continue
		}
		cause := CausePrecondition
		if one.Kind == spec.Postcondition {
			cause = CausePostcondition
		}
		c.Blocked = &Block{
			Cause:   cause,
			Problem: providers.Refuse(fmt.Sprintf("its %s does not hold: %s", one.Kind, one.Message), providers.Say(fmt.Sprintf("make true the condition in lifecycle of %s, or change it", c.Address.Block()))),
		}
		return
	}
}

// undecidedBlocks blocks what would take an object down before a precondition of its own change can be evaluated. Unknown never
// authorises a mutation.
func (o *orderer) undecidedBlocks() bool {
	again := false
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		down := slices.ContainsFunc(o.steps(i), func(s providers.Step) bool { return s.Phase.Sinks() }) || o.active(i) && c.Object != nil && o.lowered(i) >= 0
		if c.Undecided && down {
			again = o.block(i, Block{Cause: CausePrecondition, Problem: providers.Refuse(
				"a precondition of it is known only after other changes of this plan, and its object would be taken down before",
				providers.Say("apply first what the condition refers to, without a change of this one, or change the condition"))}) || again
		}
	}
	return again
}
