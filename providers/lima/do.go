package lima

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// Do carries out one step.
func (p *Provider) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	return guard.Run(ctx, p, w, log)
}

// Begin prepares a step on a VM or a disk. The last step to end leaves no empty home behind.
func (p *Provider) Begin(_ context.Context, w providers.Work, log providers.Log) (guard.Task, func() error, error) {
	p.locks.steps.RLock()
	end := func() error {
		p.locks.steps.RUnlock()
		return p.sweep()
	}
	if w.Address.Kind == spec.Disk {
		return &diskJob{Provider: p, Work: w, log: log}, end, nil
	}
	return &job{Provider: p, Work: w, log: log, policy: machine.DecodePolicy(w.Policy)}, end, nil
}

// job is a step on an instance.
type job struct {
	*Provider
	providers.Work
	log        providers.Log
	policy     machine.Policy
	want       machine.VM
	seen       *instance // as it was last read; nil: there is none
	disks      map[string]*observedDisk
	said       string // the last progress of a wait
	agentAsked bool   // the host agent without QEMU was asked to end
	agent      int    // the pid of the host agent that the step has started; 0: none
}

// Guard names the step and its instance.
func (j *job) Guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.settings.Project, Thing: "instance", Look: func(now guard.Seen) string { return "ls -l " + j.dir(now.Name) }}
}

// Look reads the instance that the step is about.
func (j *job) Look(ctx context.Context) (*guard.Seen, error) {
	if err := j.observe(ctx); err != nil || j.seen == nil {
		return nil, err
	}
	s := j.described(j.seen, j.disks, anyName)
	return s.Guarded(), nil
}

// anyName stands for the addresses of disks, which no step relies on.
func anyName(d *observedDisk) string { return d.name }

// observe reads the instance that the step is about.
func (j *job) observe(ctx context.Context) error {
	s, err := j.readInstance(ctx, j.Name, j.find(ctx))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		j.seen = nil
		return nil
	case err != nil:
		return fail(err, "read %s", j.Name)
	case j.isLeftover(s):
		j.seen = nil
		return nil
	case s.id != j.Object && j.Op == machine.OpDefine:
		return j.nameTaken(s)
	case s.id != j.Object && s.mark == nil && s.copied == nil && j.Prior != cty.NilVal && j.Phase != providers.PhaseMake:
		// The record's instance has lost its mark: the guard decides.
		s.id = j.Object
	case s.id != j.Object: // another instance has the name, and this one is gone
		j.seen = nil
		return nil
	}
	if s.state == stateUnknown {
		return fail(s.unknown(), "read what runs %s", j.Name)
	}
	j.seen = s
	j.disks = map[string]*observedDisk{}
	for _, name := range append(namesOf(s.doc), j.attachedNow()...) {
		if d, err := j.readDisk(name); err == nil {
			j.disks[name] = d
		}
	}
	return nil
}

// attachedNow returns the names of the disks that QEMU has.
func (j *job) attachedNow() []string {
	if len(j.seen.drivers) == 0 {
		return nil
	}
	return j.attachedTo(j.seen.drivers[0].Argv)
}

func (j *job) nameTaken(by *instance) error {
	p := j.settings.Project
	if o := by.owner(); o != nil && by.mark != nil && o.ID == p.Lineage() && j.Bears(o.Address) {
		return machine.MadeElsewhere(j.Work, "instance", j.Name, by.id)
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "name_taken",
		Next: providers.Say("look at it: ls -l "+j.dir(by.name), fmt.Sprintf("set another name in the block of %s", j.Address)),
		Err:  fmt.Errorf("%s %s: an instance of the name %s exists already, and it is not the one to be made", j.Op, j.Address, by.name),
	}
}

// Values returns the attributes of the instance that Lima sets.
func (j *job) Values(context.Context) (map[string]cty.Value, error) {
	return j.described(j.seen, j.disks, anyName).Computed, nil
}

// Verb returns the operation of the step.
func (j *job) Verb() (guard.Verb, error) {
	switch j.Op {
	case machine.OpDefine, machine.OpRedefine, machine.OpStart, opWaitSSH:
		vm, err := machine.Decode(j.Want)
		if err != nil {
			return guard.Verb{}, err
		}
		j.want = vm
	}
	switch j.Op {
	case opWaitSSH:
		return guard.Verb{Act: j.waitSSH}, nil
	case machine.OpStop, machine.OpRecover:
		return guard.Verb{Done: j.tookItselfDown, Act: j.takeDown}, nil
	case opRemoveRemains:
		if machine.ArgsOf(j.Step).RunOnly {
			return guard.Verb{Done: guard.If(func() bool { return j.seen != nil && j.described(j.seen, j.disks, anyName).IsTidy() }, "nothing is left"), Act: j.tidy}, nil
		}
		return guard.Verb{Need: guard.Expected, Act: j.removeRemains}, nil
	}
	act, known := map[string]machine.Act{
		machine.OpDefine: j.define, machine.OpRedefine: j.define, machine.OpDetach: j.detach, machine.OpUnmark: j.unmark, machine.OpStart: j.start,
		machine.OpDelete: j.delete,
	}[j.Op]
	if !known {
		panic("unknown operation " + j.Op)
	}
	var seen *machine.Seen
	if j.seen != nil {
		s := j.described(j.seen, j.disks, anyName)
		seen = &s
	}
	return machine.Verb(j.Work, seen, j.isWanted, act), nil
}

// owns reports whether the step may act on an instance.
func (j *job) owns(s *instance) bool {
	seen := j.described(s, nil, anyName)
	return j.Guard().Owns(*seen.Guarded())
}

// tidy removes the remains of the last run of an instance that is off.
func (j *job) tidy(ctx context.Context) (*guard.Outcome, error) {
	if j.seen.on() {
		return nil, j.stillRuns()
	}
	removed, err := j.reclaim(ctx)
	if err != nil {
		return nil, fail(err, "tidy up after the last run of %s", j.Name)
	}
	return guard.Did(providers.Done, removed...), nil
}

// removeRemains removes what is left of an instance that is gone: the folder of an attempt to make it, and
// the locks of its disks. Another instance of the name keeps its locks.
func (j *job) removeRemains(ctx context.Context) (*guard.Outcome, error) {
	var removed []string
	var err error
	if f := j.find(ctx); f.err == nil && len(f.of[j.Name]) == 0 && !exists(j.dir(j.Name)) {
		removed, err = j.releaseLocks(j.Name)
	}
	if err == nil {
		err = removeTree(j.dir(makingTemp + string(j.Object)))
	}
	if err == nil {
		err = j.forgetKeys()
	}
	if err != nil {
		return nil, fail(err, "remove what is left of %s", j.Name)
	}
	return guard.Did(providers.Done, freed(removed)...), nil
}

func freed(disks []string) []string {
	var all []string
	for _, disk := range disks {
		all = append(all, "freed the disk "+disk)
	}
	return all
}

func (j *job) stillRuns() error {
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "still_running", Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s %s: it is %s", j.Op, j.Address, j.seen.state),
	}
}

// keyFolder returns the folder of what vmctl knows of an instance's keys.
func (p *Provider) keyFolder(id providers.ID) string {
	return filepath.Join(p.settings.Keys, string(id))
}
