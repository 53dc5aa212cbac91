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
	log   providers.Log
	fault fault

	giveUp func() error // ends its turn
}

// Do carries out one step.
func (p *Provider) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	t := &task{Provider: p, Work: w, log: log}
	var r providers.Result
	err := t.inTurn(ctx, func() (err error) {
		r, err = t.do(ctx)
		return err
	})
	if err != nil {
		return providers.Result{}, asFailure(err, fmt.Sprintf("%s %s", w.Op, w.Address))
	}
	return r, nil
}

func (t *task) do(ctx context.Context) (providers.Result, error) {
	if err := t.clean(); err != nil {
		return providers.Result{}, err
	}
	if err := t.begin(ctx); err != nil {
		return providers.Result{}, err
	}
	switch t.Address.Kind {
	case spec.VM:
		return (&job{task: t, policy: machine.DecodePolicy(t.Policy)}).do(ctx)
	case spec.Disk:
		return (&diskJob{task: t}).do(ctx)
	case spec.GuestFile: // it is inside a VM
		fallthrough
	default:
		panic("unknown kind " + string(t.Address.Kind))
	}
}

// job is a step on a VM.
type job struct {
	*task
	want   config
	policy machine.Policy
	seen   *observedVM // the VM when the step began; nil: there was none
}

func (j *job) do(ctx context.Context) (providers.Result, error) {
	if err := j.observe(ctx); err != nil {
		return providers.Result{}, err
	}
	if err := j.mine(); err != nil {
		return providers.Result{}, err
	}
	switch j.Op {
	case opDefine, opRedefine, opStart:
		vm, err := machine.Decode(j.Want)
		if err != nil {
			return providers.Result{}, err
		}
		j.want = configOf(vm, j.Uses)
	case opUpload, opWaitReady, opStop, opRecover, opDelete, opUnlock, opClear, opDetach, opUnmark:
	default:
		panic("unknown operation " + j.Op)
	}
	switch j.Op {
	case opDefine:
		return j.define(ctx)
	case opRedefine:
		return j.redefine(ctx)
	case opDetach:
		return j.detach(ctx)
	case opUnmark:
		return j.letGo(ctx)
	case opUpload:
		return j.upload(ctx)
	case opStart:
		return j.start(ctx)
	case opWaitReady:
		return j.waitReady(ctx)
	case opStop, opRecover:
		return j.takeDown(ctx)
	case opUnlock:
		return j.release(ctx)
	case opClear:
		return j.clear(ctx)
	default:
		return j.delete()
	}
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
	return &providers.Failure{
		Outcome: providers.Unsafe, Code: "name_taken",
		Next: providers.Say("look at it: "+j.vmPath(by.Name), fmt.Sprintf("set another name in the block of %s", j.Address)),
		Err:  fmt.Errorf("%s %s: a VM of the name %s exists already (%s), and it is not the one to be made", j.Op, j.Address, by.Name, by.ID),
	}
}

// guard checks the VM of the step.
func (j *job) guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.settings.Project, Thing: "VM", Look: func(now guard.Seen) string { return j.vmPath(now.Name) }}
}

// guarded returns the VM as the guard sees it.
func (s *observedVM) guarded() *guard.Seen {
	if s == nil {
		return nil
	}
	return &guard.Seen{ID: s.ID, Name: s.Name, Mark: s.Owner.mark(), Fingerprint: s.fingerprint()}
}

// owns reports whether the step may act on a VM.
func (j *job) owns(s observedVM) bool { return j.guard().Owns(*s.guarded()) }

func (j *job) mine() error     { return j.guard().Mine(j.seen.guarded()) }
func (j *job) expected() error { return j.guard().Expected(j.seen.guarded()) }
func (j *job) there() error    { return j.guard().There(j.seen.guarded()) }

// marksAnew reports whether the object may bear no mark, as it is being imported.
func (t *task) marksAnew() bool { return t.Args[machine.ArgImport] == yes }

// result reads the VM once more and returns the outcome of the step.
func (j *job) result(ctx context.Context, how providers.How, evidence ...string) (providers.Result, error) {
	if err := j.observe(ctx); err != nil {
		return providers.Result{}, err
	}
	if j.seen == nil {
		return j.guard().Gone(how, evidence...), nil
	}
	running := j.seen.state == providers.StateRunning
	return providers.Result{
		ID: j.Object, Values: cty.ObjectVal(j.seen.computed()), Running: &running,
		Fingerprint: j.seen.fingerprint(), How: how, Evidence: evidence,
	}, nil
}
