package libvirt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// The operations of this provider's steps.
const (
	opDefine   = machine.OpDefine
	opRedefine = machine.OpRedefine
	opDetach   = machine.OpDetach
	opStart    = machine.OpStart
	opWaitSSH  = "wait_ssh"
	opStop     = machine.OpStop
	opRecover  = machine.OpRecover
	opDelete   = machine.OpDelete
	opUnmark   = machine.OpUnmark
	opUnkey    = "unkey"
	opUpload   = "upload"
)

const (
	defineTimeout = 10 * time.Minute // uploads a kernel and an initial RAM disk
	deleteTimeout = 2 * time.Minute
	unkeyTimeout  = time.Minute
)

// Steps returns the steps of a change.
func (p *Provider) Steps(c providers.Change) ([]providers.Step, error) {
	switch c.Kind { //nolint:exhaustive // it has no other kinds
	case spec.Disk:
		return p.diskSteps(c)
	case spec.Network:
		return p.networkSteps(c)
	}
	r := &recipe{p: p, change: c, policy: machine.DecodePolicy(c.Policy)}
	if err := r.read(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Address, err)
	}
	steps := machine.Recipe(c, r.abilities())
	r.withKeys(steps)
	if no := r.refusal(steps); no != nil {
		return nil, no
	}
	return steps, nil
}

// withKeys tells the steps that write the guest's keys which keys to write, if an edit
// changes them.
func (r *recipe) withKeys(steps []providers.Step) {
	which := machine.KeysKept
	switch {
	case r.change.Rekey != nil:
		which = machine.KeysNew
	case r.edits(identityAttr):
		which = machine.KeysGiven
	case r.edits(othersAttr):
		which = machine.KeysSame
	}
	machine.GiveKeys(steps, which)
}

// edits reports whether the change edits an attribute.
func (r *recipe) edits(path string) bool {
	return slices.ContainsFunc(r.change.Edits, func(e providers.Edit) bool { return e.Path == path })
}

// recipe holds libvirt's part in the recipe of a change of a VM.
type recipe struct {
	p      *Provider
	change providers.Change
	policy machine.Policy
	want   machine.VM
}

// read reads the wanted VM of a change that makes or changes one, and refuses a VM that QEMU
// could never make.
func (r *recipe) read() error {
	switch r.change.Action {
	case providers.Destroy, providers.Adopt, providers.Forget, providers.Release, providers.NoOp:
		return nil
	case providers.Create, providers.Update, providers.Import, providers.RestartIt, providers.ReplaceIt, providers.Start, providers.Recover, providers.Stop:
	}
	want, err := decode(r.change.Want)
	if err != nil {
		return err
	}
	r.want = want
	if makes := r.change.Action == providers.Create || r.change.Action == providers.ReplaceIt; !makes {
		return nil
	}
	if bootless(r.change.Want) {
		return fmt.Errorf("nothing to boot: write boot { kernel = \"…\" }")
	}
	return machine.CheckName(r.change.Name)
}

func (r *recipe) abilities() machine.Abilities {
	a := machine.Abilities{
		Policy: r.policy, On: r.want.Running, Touches: touches, Wanted: r.wanted(), Shared: machine.Shares(r.want, r.change.Uses),
		Ready: opWaitSSH, Change: defineTimeout, Leaves: r.leaves,
	}
	if r.want.Image != nil {
		a.Last = []providers.Step{{
			Op: opUnkey, Words: providers.Words{Doing: "taking the keys out of its seed", Done: "took the keys out of its seed"},
			Phase: providers.PhaseTidy, Class: providers.Diagnostic, Timeout: unkeyTimeout,
		}}
	}
	if r.change.Action == providers.Forget && r.change.Object == nil { // the domain is gone; its volumes and keys may not be
		a.First = []providers.Step{{
			Op: opDelete, Phase: providers.PhaseRemove, Timeout: r.policy.Delete, Object: r.change.ID, Name: r.change.Name,
		}}
	}
	if r.change.Action == providers.RestartIt && r.spoilt() { // else a failed upload would leave it down
		a.First = []providers.Step{{Op: opUpload, Phase: providers.PhaseRelease, Timeout: defineTimeout}}
	}
	return a
}

// spoilt reports whether the domain cannot boot from its files.
func (r *recipe) spoilt() bool {
	return r.change.Object != nil && r.want.Boot != nil && slices.ContainsFunc(r.change.Object.Findings, func(f providers.Finding) bool {
		return f.Kind == providers.FindPartial && f.Attr == bootAttr
	})
}

// leaves lists the remains that an operation may leave behind.
func (r *recipe) leaves(op, name string) []string {
	switch op {
	case opDefine:
		return []string{
			fmt.Sprintf("domain %s (%s) at %s", name, r.change.ID, r.p.location.URI), r.volumes(), "keys in " + r.p.keyFolder(string(r.change.ID)),
		}
	case opRedefine, opDelete, opUpload:
		return []string{r.volumes()}
	case opStart:
		return []string{fmt.Sprintf("domain %s running", name)}
	case opUnkey:
		return []string{"volumes " + kindSeed.pattern(string(r.change.ID))}
	default:
		return nil
	}
}

// volumes names the files of an object.
func (r *recipe) volumes() string {
	id := string(r.change.ID)
	if r.want.Image == nil {
		return fmt.Sprintf("volumes %s, %s", kindKernel.pattern(id), kindInitrd.pattern(id))
	}
	return fmt.Sprintf("volumes %s, %s, %s", kindRoot.pattern(id), kindSeed.pattern(id), kindImage.pattern(r.p.imagesOf()))
}

// touches reports whether an edit changes the domain. The login and the check of the host key
// are between vmctl and the guest; the same bytes under another path are the same boot files.
func touches(e providers.Edit) bool {
	if strings.HasPrefix(e.Path, "restart_triggers.") {
		return false
	}
	switch e.Path {
	case "running", "ssh.user", "ssh.host_key", "boot.kernel", "boot.initrd", "restart_triggers":
		return false
	default:
		return true
	}
}

// broken reports whether the domain runs but cannot react to a request.
func (r *recipe) broken() bool {
	o := r.change.Object
	return o != nil && o.State != providers.StateOff && (o.State == providers.StateBroken || machine.Found(o, providers.FindBroken))
}

// wanted returns the claims of the domain once it is as wanted.
func (r *recipe) wanted() []providers.Claim {
	return machine.Claims(nameClaim(r.p.location.URI, machine.Name(r.change)), r.want, r.change.Uses)
}

// refusal returns the reason why the steps could only fail with the domain as it is now; nil:
// there is none.
func (r *recipe) refusal(steps []providers.Step) error {
	does := func(ops ...string) bool {
		return slices.ContainsFunc(steps, func(step providers.Step) bool { return slices.Contains(ops, step.Op) })
	}
	name := machine.Name(r.change)
	if does(opRedefine, opDetach, opDelete) {
		if err := onLayers(r.change.Object); err != nil {
			return err
		}
	}
	if does(opStop, opRecover, opRedefine) {
		if err := inJob(r.change.Object); err != nil {
			return err
		}
	}
	switch {
	case machine.Found(r.change.Object, providers.FindDirty) && does(opRedefine):
		return providers.Refuse(savedMemory, r.p.beforeRedefine(name))
	case r.change.Object != nil && isForeign(*r.change.Object) && r.edits(forwardAttr):
		return providers.Refuse("vmctl did not make it: its network is its own, and no port is forwarded into it",
			providers.Say(fmt.Sprintf("write port_forward of %s as its domain has it, or leave it out", r.change.Address)))
	case r.change.Object != nil && isForeign(*r.change.Object) && len(r.want.Interfaces) > 0 && does(opRedefine):
		return providers.Refuse("vmctl did not make it: its network cards are its own, and it is put into no network",
			providers.Say(fmt.Sprintf("leave network_interface out of the block of %s", r.change.Address)))
	case r.lacksIdentity() != "" && does(opRedefine):
		return providers.Refuse("the key "+r.lacksIdentity()+" is not on this machine", providers.Say("put it there, or run vmctl where it is"))
	case r.lacksKeys() && does(opRedefine):
		return providers.Refuse("what is written for its guest holds its keys, which are not on this machine", waysToKeys(r.change.Address))
	case r.broken() && !r.policy.Force && does(opStop, opRecover):
		return providers.Refuse("what runs of it can hear no request, and stop { force = false } forbids to force it",
			providers.Say(
				"end it by hand: virsh -c "+r.p.location.URI+" destroy "+r.change.Object.Name,
				fmt.Sprintf("or let vmctl force it: stop { force = true } in %s", r.change.Address),
			))
	}
	return nil
}

// lacksIdentity returns the spec's key file that a change would have to read, if it is
// missing; "": none.
func (r *recipe) lacksIdentity() string {
	rekeys := r.change.Rekey != nil || r.edits(identityAttr)
	if file := r.p.keyFiles(string(r.change.ID), r.change.Name, r.want.SSH).identity; rekeys && r.want.SSH.Identity != "" && !exists(file) {
		return file
	}
	return ""
}

// lacksKeys reports whether a change would have to write keys that are not on this machine.
func (r *recipe) lacksKeys() bool {
	writes := r.edits("boot.initrd_sha256") || r.edits(othersAttr)
	return machine.Found(r.change.Object, providers.FindNoKey) && writes && r.change.Rekey == nil && !r.edits(identityAttr)
}

const savedMemory = "its managed-save image does not match the new settings"

// beforeRedefine returns commands for a domain with saved memory.
func (p *Provider) beforeRedefine(name string) []providers.Advice {
	return providers.Say(
		"go on from it, then apply: virsh -c "+p.location.URI+" start "+name,
		"or throw it away: virsh -c "+p.location.URI+" managedsave-remove "+name,
	)
}
