package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// task is one step under way, on any kind of object.
type task struct {
	*Provider
	providers.Work
	log providers.Log

	giveUp func() error // ends its turn
}

// Do carries out one step.
func (p *Provider) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	return guard.Run(ctx, p, w, log)
}

// Begin prepares a step on a VM or a disk.
func (p *Provider) Begin(ctx context.Context, w providers.Work, log providers.Log) (guard.Task, func() error, error) {
	t := &task{Provider: p, Work: w, log: log}
	switch w.Address.Kind { //nolint:exhaustive // it has no other kinds
	case spec.VM:
		return t.begun(ctx, &job{task: t, policy: machine.DecodePolicy(w.Policy)})
	case spec.Disk:
		return t.begun(ctx, &diskJob{task: t, want: diskWantOf(w.Want)})
	case spec.Network:
		return t.begun(ctx, &networkJob{task: t, want: machine.DecodeNetwork(w.Want)})
	case spec.Workspace:
		panic("a workspace is inside of a VM")
	default:
		panic("unknown kind " + string(w.Address.Kind))
	}
}

// begun takes the turn of a step, in which no other step acts on the host.
func (t *task) begun(ctx context.Context, of guard.Task) (_ guard.Task, end func() error, err error) {
	if t.giveUp, err = t.takeTurn(ctx, t.Timeout); err != nil {
		return nil, nil, err
	}
	begun := false
	defer func() {
		if !begun {
			err = errors.Join(err, t.giveUp())
		}
	}()
	if err = t.clean(); err != nil {
		return nil, nil, err
	}
	begun = true
	return of, func() error { return t.giveUp() }, nil
}

// Failure returns a failure with err as its cause.
func (p *Provider) Failure(err error, format string, args ...any) *providers.Problem {
	return fail(err, format, args...)
}

// job is a step on a VM.
type job struct {
	*task
	want   config
	policy machine.Policy
	seen   *observedVM // the VM as it was last read; nil: there is none
	extra  orders      // beside those of every start
}

// Verb returns the operation of the step.
func (j *job) Verb() (guard.Verb, error) {
	switch j.Op {
	case opDefine, opRedefine, opStart:
		vm, err := machine.Decode(j.Want)
		if err != nil {
			return guard.Verb{}, err
		}
		j.want = configOf(vm, j.Uses)
	}
	switch j.Op {
	case opUpload:
		return guard.Verb{Need: guard.Expected, Act: j.upload}, nil
	case opWaitReady:
		return guard.Verb{Act: j.waitReady}, nil
	case opStop, opRecover:
		return guard.Verb{Done: j.tookItselfDown, Act: j.takeDown}, nil
	case opUnlock:
		return guard.Verb{Done: guard.If(j.isFree, "its disk is free"), Act: j.release}, nil
	case opClear:
		return j.clearing(), nil
	}
	act, known := map[string]machine.Act{
		opDefine: j.put, opRedefine: j.put, opDetach: j.detach, opUnmark: j.letGo, opStart: j.start, opDelete: j.delete,
	}[j.Op]
	if !known {
		panic("unknown operation " + j.Op)
	}
	var seen *machine.Seen
	if j.seen != nil {
		s := j.seen.described(anyName)
		seen = &s
	}
	return machine.Verb(j.Work, seen, j.isWanted, act), nil
}

// Look reads the VM that the step is about.
func (j *job) Look(ctx context.Context) (*guard.Seen, error) {
	err := j.observe(ctx)
	return j.seen.guarded(), err
}

// observe reads the VM that the step is about.
func (j *job) observe(ctx context.Context) error {
	s, err := j.observeVM(ctx, j.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		j.seen = nil
		return nil
	case err != nil:
		return fail(err, "read %s", j.Name)
	case s.ID != j.Object && j.Op == opDefine:
		return j.nameTaken(s.vmFile)
	case s.ID != j.Object: // another VM has the name, and this one is gone
		j.seen = nil
		return nil
	case s.state == "":
		return fail(errors.New(s.reason), "read what runs %s", j.Name)
	}
	j.seen = &s
	return nil
}

func (j *job) nameTaken(by vmFile) error {
	if by.oursFor(j.settings.Project, j.Address) {
		return machine.MadeElsewhere(j.Work, "VM", j.Name, by.ID)
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "name_taken",
		Next: providers.Say("look at it: "+j.vmPath(by.Name), fmt.Sprintf("set another name in the block of %s", j.Address)),
		Err:  fmt.Errorf("%s %s: a VM of the name %s exists already (%s), and it is not the one to be made", j.Op, j.Address, by.Name, by.ID),
	}
}

// Guard names the step and its VM.
func (j *job) Guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.settings.Project, Thing: "VM", Look: func(now guard.Seen) string { return j.vmPath(now.Name) }}
}

// guarded returns the VM as the guard sees it.
func (s *observedVM) guarded() *guard.Seen {
	if s == nil {
		return nil
	}
	return s.described(anyName).Guarded()
}

// anyName stands for the addresses of disks, which no step relies on.
func anyName(d observedDisk) string { return d.Name }

// Values returns the attributes of the VM that the host sets.
func (j *job) Values(context.Context) (map[string]cty.Value, error) { return j.seen.computed(), nil }

// owns reports whether the step may act on a VM.
func (j *job) owns(s observedVM) bool { return j.Guard().Owns(*s.guarded()) }
