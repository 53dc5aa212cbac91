package sim

import (
	"fmt"

	"vmctl/providers"
	"vmctl/providers/machine"
)

func (p *Provider) diskSteps(c providers.Change) ([]providers.Step, error) {
	if makes := c.Action == providers.Create || c.Action == providers.ReplaceIt; makes {
		if err := checkName(c.Name); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Address, err)
		}
	}
	a := machine.DiskAbilities{
		Policy: machine.DecodePolicy(c.Policy), Change: fileTimeout, Wanted: []providers.Claim{diskNameClaim(c.Name)}, Clear: opClear,
		Leaves: func(op string) []string {
			switch op {
			case opDefine:
				return []string{"the file " + p.diskMark(c.Name), "the file " + p.diskPath(c.Name)}
			case opRedefine, opGrow, opDelete:
				return []string{"the file " + p.diskMark(c.Object.Name)}
			default:
				return nil
			}
		},
	}
	if c.Object != nil {
		a.Lock = []providers.Claim{diskLockClaim(c.Object.Name)}
	}
	return machine.DiskRecipe(c, a)
}
