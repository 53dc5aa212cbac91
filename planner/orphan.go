package planner

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
)

// takeBack decides about an object that is ours, in the spec, and without a record. If the object
// runs, its orphan.policy decides.
func (d *differ) takeBack(c *Change) {
	d.adopt(c)
	if stopped(c.Object) && (c.Object.Running == nil || !*c.Object.Running) {
		d.manage(c)
		return
	}
	switch policy := orphanPolicy(c.Policy); policy {
	case "adopt":
		d.adoptAsItIs(c)
	case "stop":
		c.Change.Want = with(c.Change.Want, "running", cty.False)
		d.manage(c)
		if c.Action == providers.Stop {
			c.Reason = "it runs and has no record, and its orphan.policy is stop"
		}
	case "report":
		c.Action, c.Warnings = providers.NoOp, nil
		c.Reason = "its orphan.policy is report: it is left alone"
		d.find(providers.Finding{
			Kind: providers.FindOrphan, Address: c.Address, Object: c.Name,
			Evidence: []string{fmt.Sprintf("%s runs and bears our mark, and its record was lost", describe(d.world.systems[c.System], c.Object))},
			Action:   "left alone, as its orphan.policy says",
		})
	default: // recover, and any policy that only a newer build knows
		d.manage(c)
		if c.Blocked == nil && !healthy(c.Object) && ctyread.True(c.Change.Want, "running") {
			d.recover(c)
		}
	}
}

// recover plans to take down an object that runs and does not work, and to start it again.
func (d *differ) recover(c *Change) {
	switch c.Action {
	case providers.Adopt, providers.Start, providers.Update, providers.NoOp:
		c.Action, c.Reason = providers.Recover, "it is ours, its record was lost, and it does not work: started anew"
	case providers.Create, providers.Import, providers.RestartIt, providers.ReplaceIt, providers.Destroy, providers.Stop,
		providers.Forget, providers.Release, providers.Recover:
	}
}

// adoptAsItIs only writes the record of an object that runs. It blocks the change if the object
// does not work.
func (d *differ) adoptAsItIs(c *Change) {
	c.ID, c.Action, c.Reason = c.Object.ID, providers.Adopt, "it is ours, and its record was lost"
	if !healthy(c.Object) {
		c.Blocked = &Block{
			Cause: CauseUnhealthy,
			Problem: providers.Refuse(
				fmt.Sprintf("its orphan.policy is adopt, and that it works could not be verified: it is %s", howItIs(c.Object)),
				providers.Say(
					fmt.Sprintf("to have it started anew, write in the block of %s: orphan { policy = \"recover\" }", c.Address),
					"or end what runs with the system's own tool",
				)),
		}
		return
	}
	// The record gets the present values, not the wanted ones: the next plan compares the two.
	c.Prior = with(c.Prior, "name", cty.StringVal(c.Object.Name))
	c.Want, c.Change.Want = nil, cty.NilVal
}

// healthy reports whether an object runs and works, as far as its provider can tell.
func healthy(o *providers.Object) bool {
	broken := slices.ContainsFunc(o.Findings, func(f providers.Finding) bool { return f.Kind == providers.FindBroken })
	return o.Running != nil && *o.Running && !broken
}

// howItIs returns the run state of an object, and the evidence if it is broken.
func howItIs(o *providers.Object) string {
	for _, f := range o.Findings {
		if f.Kind == providers.FindBroken && len(f.Evidence) > 0 {
			return o.State + " (" + f.Evidence[0] + ")"
		}
	}
	return o.State
}

func orphanPolicy(policy cty.Value) string {
	return ctyread.Text(ctyread.Attr(policy, "orphan"), "policy")
}
