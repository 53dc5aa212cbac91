package lima

import (
	"fmt"
	"strings"
	"time"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// The operations of this provider's steps, beside the kit's.
const (
	opWaitSSH = "wait_ssh"
	opClear   = "clear" // remove what the last run left, or what is left of an object that is gone
)

const fileTimeout = time.Minute

// Steps returns the steps of a change.
func (p *Provider) Steps(c providers.Change) ([]providers.Step, error) {
	if c.Kind == spec.Disk {
		return p.diskSteps(c)
	}
	r := &recipe{p: p, change: c, policy: machine.DecodePolicy(c.Policy)}
	if err := r.read(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Address, err)
	}
	return machine.Recipe(c, r.abilities()), nil
}

// recipe holds Lima's part in the recipe of a change of a VM.
type recipe struct {
	p      *Provider
	change providers.Change
	policy machine.Policy
	want   machine.VM
}

func (r *recipe) read() error {
	ends := r.change.Action == providers.Destroy || r.change.Action == providers.ReplaceIt
	if o := r.change.Object; ends && o != nil && exists(r.p.path(o.Name, protection)) {
		return fmt.Errorf("the instance %[1]s is protected by limactl: limactl unprotect %[1]s lets it be removed", o.Name)
	}
	switch r.change.Action {
	case providers.Destroy, providers.Adopt, providers.Forget, providers.Release, providers.NoOp:
		return nil
	case providers.Create, providers.Update, providers.Import, providers.RestartIt, providers.ReplaceIt, providers.Start, providers.Recover, providers.Stop:
	}
	want, err := machine.Decode(r.change.Want)
	if err != nil {
		return err
	}
	r.want = want
	if makes := r.change.Action == providers.Create || r.change.Action == providers.ReplaceIt; makes {
		return r.p.checkName(r.change.Name)
	}
	return nil
}

// checkName fails if an instance cannot have that name.
func (p *Provider) checkName(name string) error {
	if len(name) > nameLimit {
		return fmt.Errorf("name = %q: a name has at most %d bytes", name, nameLimit)
	}
	if err := machine.CheckName(name); err != nil {
		return err
	}
	if strings.ContainsAny(name, "+=~") {
		return fmt.Errorf("name = %q: Lima allows letters, digits and . _ - only", name)
	}
	return p.fits(name)
}

func (r *recipe) abilities() machine.Abilities {
	a := machine.Abilities{
		Policy: r.policy, On: ctyread.True(r.change.Want, "running"), Touches: touches, Ready: opWaitSSH, Change: fileTimeout,
		Wanted: machine.Claims(nameClaim(machine.Name(r.change)), r.want, r.change.Uses), Running: r.locks(), Leaves: r.leaves, WhenUp: true, StopWhenUp: true,
	}
	if r.change.Object != nil && r.change.Object.Owner == nil || machine.Found(r.change.Object, providers.FindPartial) {
		a.Change = r.policy.Create // it makes the root disk
	}
	switch r.change.Action {
	case providers.Update, providers.Import:
		a.First = machine.TidyUp(r.change.Object, opClear, fileTimeout)
	case providers.Forget:
		if r.change.Object == nil {
			a.First = []providers.Step{{Op: opClear, Phase: providers.PhaseRemove, Object: r.change.ID, Name: r.change.Name, Timeout: fileTimeout}}
		}
	case providers.Create, providers.RestartIt, providers.ReplaceIt, providers.Start, providers.Recover, providers.Stop, providers.Destroy,
		providers.Adopt, providers.Release, providers.NoOp:
	}
	return a
}

// locks returns the claims of a running VM on the locks of its disks.
func (r *recipe) locks() []providers.Claim {
	var all []providers.Claim
	for _, a := range r.want.Disks {
		if name := r.change.Uses[a].Name; name != "" {
			all = append(all, lockClaim(name))
		}
	}
	return all
}

// leaves lists the remains that an operation may leave behind.
func (r *recipe) leaves(op, name string) []string {
	switch op {
	case machine.OpDefine:
		return []string{"the folder " + r.p.dir(name), "the folder " + r.p.dir(makingTemp+string(r.change.ID))}
	case machine.OpRedefine, machine.OpDetach, machine.OpDelete:
		return []string{"the folder " + r.p.dir(name)}
	case machine.OpStart:
		return []string{"a host agent with the argument " + r.p.path(name, agentPid), "QEMU with the argument " + r.p.path(name, driverPid)}
	default:
		return nil
	}
}

// touches reports whether an edit changes the definition of an instance, or its mark.
func touches(e providers.Edit) bool {
	return e.Path != "running" && e.Path != "ssh.host_key" && e.Path != "restart_triggers" && !strings.HasPrefix(e.Path, "restart_triggers.")
}

func (p *Provider) diskSteps(c providers.Change) ([]providers.Step, error) {
	if makes := c.Action == providers.Create || c.Action == providers.ReplaceIt; makes {
		if err := p.checkName(c.Name); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Address, err)
		}
	}
	a := machine.DiskAbilities{
		Policy: machine.DecodePolicy(c.Policy), Change: fileTimeout, Wanted: []providers.Claim{diskNameClaim(c.Name)}, Clear: opClear,
		Leaves: func(op string) []string {
			switch op {
			case machine.OpDefine:
				return []string{"the folder " + p.diskDir(c.Name), "the folder " + p.diskDir(makingTemp+string(c.ID))}
			case machine.OpRedefine, machine.OpGrow, machine.OpDelete:
				return []string{"the folder " + p.diskDir(c.Object.Name)}
			default:
				return nil
			}
		},
	}
	if c.Object != nil {
		a.Lock = []providers.Claim{lockClaim(c.Object.Name)}
	}
	return machine.DiskRecipe(c, a)
}
