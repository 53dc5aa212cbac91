package planner

import (
	"fmt"
	"maps"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// checks evaluates the conditions of the spec with the values that objects have once the plan is
// carried out, as far as these are known. A condition of a check block that is bad is a finding, and so
// is a bad postcondition; a bad precondition blocks its change.
func (d *differ) checks() []spec.Check {
	if d.options.Destroy || d.isPower() {
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
		if c.IsBad() && c.Kind != spec.Precondition {
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

// observedChecks returns the conditions that are bad with the values that objects really have.
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
		if c.IsBad() {
			bad = append(bad, DriftItem{Kind: providers.FindCheck, Address: c.Address, Departure: Departure{Evidence: evidenceOf(c)}})
		}
	}
	return bad
}
