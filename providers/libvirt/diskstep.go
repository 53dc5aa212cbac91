package libvirt

import (
	"errors"
	"fmt"
	"slices"

	"vmctl/providers"
	"vmctl/providers/machine"
)

const opGrow = machine.OpGrow

// diskSteps returns the steps of a change of a disk.
func (p *Provider) diskSteps(c providers.Change) ([]providers.Step, error) {
	var want store
	if c.Action == providers.Create || c.Action == providers.ReplaceIt {
		var err error
		if want, err = storeOf(c.Want); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Address, err)
		}
		if err := machine.CheckName(c.Name); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Address, err)
		}
	}
	policy := machine.DecodePolicy(c.Policy)
	steps, err := machine.DiskRecipe(c, machine.DiskAbilities{
		Policy: policy, Change: policy.Create, Wanted: []providers.Claim{volumeClaim(p.location.URI, c.Name)}, Clear: opDelete,
		Leaves: func(op string) []string {
			switch op {
			case opDefine:
				volume := volumeOf(c.Name, want.Format)
				return []string{fmt.Sprintf("volumes %s and %s", volume, sidecarOf(volume))}
			case opDelete:
				return []string{"its volume and the mark beside it"}
			default:
				return nil
			}
		},
	})
	if slices.ContainsFunc(steps, func(step providers.Step) bool { return step.Op == opGrow || step.Op == opDelete }) {
		if err := errors.Join(onLayers(c.Object), inJob(c.Object)); err != nil {
			return nil, err
		}
	}
	return steps, err
}
