package sim

import (
	"context"
	"fmt"
	"slices"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// detach removes the disks, ports and networks that the step frees from the VM's definition, so that
// another VM can have them before this one is changed. The VM is off.
func (j *job) detach(context.Context) (*guard.Outcome, error) {
	if j.seen.on() {
		return nil, &providers.Problem{
			Outcome: providers.Unsafe, Code: "still_running", Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("%s %s: it is %s", j.Op, j.Address, j.seen.state),
		}
	}
	c := *j.seen.Config
	c.Disks = slices.DeleteFunc(slices.Clone(c.Disks), func(a attached) bool { return j.frees(j.seen.claimOn(a)) })
	c.Forwards = slices.DeleteFunc(slices.Clone(c.Forwards), func(f machine.Forward) bool { return f.Host != 0 && j.frees(f.Claim()) })
	c.Networks = slices.DeleteFunc(slices.Clone(c.Networks), func(n placed) bool {
		return j.frees(machine.NetworkUse(n.ID)) || j.frees(providers.AddressClaim(n.Name, n.IP))
	})
	f := j.seen.vmFile
	f.Config = &c
	if err := j.writeVM(f); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return guard.Did(providers.Done), nil
}

func (j *job) frees(c providers.Claim) bool { return slices.Contains(j.Frees, c) }

// letGo removes the owner mark from the VM, which stays as it is.
func (j *job) letGo(context.Context) (*guard.Outcome, error) {
	f := j.seen.vmFile
	f.Owner = nil
	if err := j.writeVM(f); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return guard.Did(providers.Done), nil
}
