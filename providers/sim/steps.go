package sim

import (
	"fmt"
	"strings"
	"time"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// The operations of this provider's steps.
const (
	opDefine    = machine.OpDefine
	opRedefine  = machine.OpRedefine
	opDetach    = machine.OpDetach
	opStart     = machine.OpStart
	opWaitReady = "wait_ready"
	opStop      = machine.OpStop
	opRecover   = machine.OpRecover
	opDelete    = machine.OpDelete
	opUnmark    = machine.OpUnmark
	opUnlock    = machine.OpUnlock // free the disk from a holder that is gone
	opClear     = "clear"          // remove the remains of an object that is gone
	opGrow      = machine.OpGrow
	opUpload    = "upload" // copy the image that a VM is made from
)

const (
	fileTimeout = time.Minute
	nameLimit   = 200 // bytes, of a file's name
)

// Steps returns the steps of a change.
func (p *Provider) Steps(c providers.Change) ([]providers.Step, error) {
	switch c.Address.Kind { //nolint:exhaustive // it has no other kinds
	case spec.VM:
		return p.vmSteps(c)
	case spec.Disk:
		return p.diskSteps(c)
	case spec.Network:
		return p.networkSteps(c)
	case spec.Workspace:
		panic("a workspace is inside of a VM")
	default:
		panic("unknown kind " + string(c.Address.Kind))
	}
}

func (p *Provider) vmSteps(c providers.Change) ([]providers.Step, error) {
	s := &recipe{p: p, change: c, policy: machine.DecodePolicy(c.Policy)}
	if err := s.read(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Address, err)
	}
	return machine.Recipe(c, s.abilities()), nil
}

// recipe holds this host's part in the recipe of a change of a VM.
type recipe struct {
	p      *Provider
	change providers.Change
	policy machine.Policy
	vm     machine.VM
	want   config
}

func (r *recipe) read() error {
	switch r.change.Action {
	case providers.Destroy, providers.Adopt, providers.Forget, providers.Release, providers.NoOp:
		return nil
	case providers.Create, providers.Update, providers.Import, providers.RestartIt, providers.ReplaceIt, providers.Start, providers.Recover, providers.Stop:
	}
	vm, err := machine.Decode(r.change.Want)
	if err != nil {
		return err
	}
	r.vm, r.want = vm, configOf(vm, r.change.Uses)
	if makes := r.change.Action == providers.Create || r.change.Action == providers.ReplaceIt; makes {
		return checkName(r.change.Name)
	}
	return nil
}

func (r *recipe) abilities() machine.Abilities {
	a := machine.Abilities{
		Policy: r.policy, On: ctyread.True(r.change.Want, "running"), Touches: touches, Wanted: r.wanted(), Shared: machine.Shares(r.vm, r.change.Uses), Running: r.locks(), Attached: r.attached(),
		Ready: opWaitReady, Change: fileTimeout, Leaves: r.leaves, WhenUp: true, Lowered: r.unlock(),
	}
	o := r.change.Object
	if o != nil {
		a.Removing = r.disk(o.Name)
	}
	switch r.change.Action {
	case providers.Create:
		if r.change.Generation > 1 { // there was one before
			a.First = []providers.Step{r.clear(providers.PhaseRelease, machine.Args{ThenMake: true})}
		}
		a.Written = r.upload(providers.PhaseReserve)
	case providers.Update, providers.Import:
		a.First = append(r.unlock(), machine.TidyUp(o, opClear, fileTimeout)...)
	case providers.ReplaceIt: // before anything is taken down: it may fail
		a.First = r.upload(providers.PhaseRelease)
	case providers.Forget:
		if o == nil {
			a.First = []providers.Step{r.clear(providers.PhaseRemove, machine.Args{})}
		}
	case providers.RestartIt, providers.Start, providers.Recover, providers.Stop, providers.Destroy, providers.Adopt,
		providers.Release, providers.NoOp:
	}
	if r.change.Action != providers.ReplaceIt && machine.Found(o, providers.FindPartial) {
		a.Written = r.upload(providers.PhaseReserve)
	}
	return a
}

// leaves lists the remains that an operation may leave behind.
func (r *recipe) leaves(op, name string) []string {
	switch op {
	case opDefine, opRedefine, opDetach, opDelete:
		return []string{"the file " + r.p.vmPath(name)}
	case opStart:
		return []string{"a process with the argument " + r.p.vmPath(name), "the file " + r.p.pidPath(r.change.ID), "the file " + r.p.agentPid(r.change.ID)}
	default:
		return nil
	}
}

// unlock returns a step if a holder that is gone still locks the disk of a VM that is off. A
// stop of a running VM frees its disk by itself.
func (r *recipe) unlock() []providers.Step {
	o := r.change.Object
	if o == nil || o.State != providers.StateOff || !machine.Found(o, providers.FindStaleLock) {
		return nil
	}
	return []providers.Step{{Op: opUnlock, Phase: providers.PhaseRelease, Timeout: fileTimeout, Frees: r.disk(o.Name)}}
}

// clear returns the step that removes the remains of a VM that no longer exists.
func (r *recipe) clear(phase providers.Phase, args machine.Args) providers.Step {
	return providers.Step{Op: opClear, Phase: phase, Object: r.change.ID, Name: r.change.Name, Timeout: fileTimeout, Args: args}
}

// upload returns a step if the VM is made from an image.
func (r *recipe) upload(phase providers.Phase) []providers.Step {
	i := r.p.newRunner().image(r.change.Want)
	if i == nil {
		return nil
	}
	return []providers.Step{{
		Op: opUpload, Phase: phase, Timeout: r.policy.Create, Args: machine.Args{Source: i.Source},
		Leaves: []string{"the file " + r.p.partPath(r.change.Address)},
	}}
}

// touches reports whether an edit changes the VM.
func touches(e providers.Edit) bool {
	return e.Path != "running" && e.Path != "boot.kernel" && e.Path != "boot.initrd" && !strings.HasPrefix(e.Path, "ssh.")
}
