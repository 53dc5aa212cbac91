package lima

import (
	"fmt"
	"strings"
	"time"

	"vmctl/internal/ctyread"
	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// The operations of this provider's steps, beside the kit's.
const (
	opWaitSSH       = "wait_ssh"
	opRemoveRemains = "clear" // remove what the last run left, or what is left of an object that is gone
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
	steps := machine.Recipe(c, r.abilities())
	if c.Rekey != nil {
		machine.GiveKeys(steps, machine.KeysNew)
	}
	return steps, nil
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
	if o := r.change.Object; ends && o != nil && o.Protected != "" {
		return providers.Refuse(fmt.Sprintf("the instance %s cannot be removed: %s", o.Name, o.Protected), r.p.unprotect(o.Name))
	}
	if lost := findingOf(r.change.Object, rootAttr); lost != nil {
		switch r.change.Action {
		case providers.Update, providers.Import, providers.RestartIt, providers.Start, providers.Recover:
			return providers.Refuse(r.change.Object.Name+" has lost its root disk: "+strings.Join(lost.Evidence, ", "), rootAdvice(r.change.Address))
		case providers.Create, providers.ReplaceIt, providers.Destroy, providers.Stop, providers.Adopt, providers.Forget, providers.Release, providers.NoOp:
		}
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
	if r.change.Rekey != nil && want.SSH.HostKey == machine.HostKeyAcceptNew {
		return keyless(r.change.Address, "host_key = \"accept-new\" leaves the guest its own host key",
			providers.Say(fmt.Sprintf("or let vmctl give it one: leave host_key out of %s, and give it new keys", r.change.Address)))
	}
	if makes := r.change.Action == providers.Create || r.change.Action == providers.ReplaceIt; makes {
		return r.p.checkName(r.change.Name)
	}
	return nil
}

// unprotect returns the ways to let an instance be removed.
func (p *Provider) unprotect(name string) []providers.Advice {
	return providers.Say(
		"to let it be removed: LIMA_HOME="+shellword.Quote(p.home)+" limactl unprotect "+name,
		"or, without limactl: rm "+shellword.Quote(p.path(name, protection)),
	)
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
	if strings.Contains(p.socketHome, ",") {
		return fmt.Errorf("the path of the home %s has a comma, with which Lima starts no QEMU: choose another home in the provider block, "+
			"or another data directory (--data-dir=DIR)", p.socketHome)
	}
	return p.checkSocketPaths(name)
}

func (r *recipe) abilities() machine.Abilities {
	a := machine.Abilities{
		Policy: r.policy, On: ctyread.True(r.change.Want, "running"), Touches: touches, Ready: opWaitSSH, Change: fileTimeout,
		Wanted: r.claims(), Running: r.locks(), Leaves: r.leaves, WhenUp: true, StopWhenUp: true, ChecksFirst: true,
	}
	if r.change.Object != nil && r.change.Object.Owner == nil || machine.Found(r.change.Object, providers.FindPartial) {
		a.Change = r.policy.Create // it makes the root disk
	}
	switch r.change.Action {
	case providers.Update, providers.Import:
		a.First = machine.TidyUp(r.change.Object, opRemoveRemains, fileTimeout)
	case providers.Forget:
		if r.change.Object == nil {
			a.First = []providers.Step{{Op: opRemoveRemains, Phase: providers.PhaseRemove, Object: r.change.ID, Name: r.change.Name, Timeout: fileTimeout}}
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
	for _, name := range r.templateDisks() {
		all = append(all, lockClaim(name))
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
		Policy: machine.DecodePolicy(c.Policy), Change: fileTimeout, Wanted: []providers.Claim{diskNameClaim(c.Name)}, Clear: opRemoveRemains,
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
