package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// task is one step under way, whatever it is about.
type task struct {
	*Provider
	providers.Work
	log   providers.Log
	fault fault

	giveUp func() error // its turn
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
	case spec.GuestFile: // of the inside of a VM
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
	seen   *sight // the VM when the step began; nil: there was none
}

func (j *job) do(ctx context.Context) (providers.Result, error) {
	if err := j.see(ctx); err != nil {
		return providers.Result{}, err
	}
	if err := j.mine(); err != nil {
		return providers.Result{}, err
	}
	switch j.Op {
	case opDefine, opRedefine, opStart:
		want, err := configOf(j.Want, j.Uses)
		if err != nil {
			return providers.Result{}, err
		}
		j.want = want
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

// see reads the VM that the step is about.
func (j *job) see(ctx context.Context) error {
	s, err := j.look(ctx, j.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		j.seen = nil
		return nil
	case err != nil:
		return fail(err, "read %s", j.Name)
	case s.ID != j.Object && j.Op == opDefine:
		return j.nameTaken(s.vmFile)
	case s.ID != j.Object: // another has the name, and this one is gone
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
		Next: []string{"look at it: " + j.vmPath(by.Name), fmt.Sprintf("set another name in the block of %s", j.Address)},
		Err:  fmt.Errorf("%s %s: a VM of the name %s exists already (%s), and it is not the one to be made", j.Op, j.Address, by.Name, by.ID),
	}
}

// mine fails unless the VM that was seen is the one that vmctl made for this
// address, or is just being given to it. Nothing else is ever acted on.
func (j *job) mine() error {
	if j.seen == nil || j.owns(j.seen.vmFile) {
		return nil
	}
	return &providers.Failure{
		Outcome: providers.Unsafe, Code: "not_ours", Next: []string{"look at it: " + j.vmPath(j.Name)},
		Err: fmt.Errorf("%s %s: VM %s (%s) does not bear the mark of %s", j.Op, j.Address, j.seen.Name, j.seen.ID, j.Address),
	}
}

// marksAnew reports whether the object may bear no mark, as it is being imported.
func (t *task) marksAnew() bool { return t.Args[machine.ArgImport] == yes }

// owns reports whether vmctl made a VM for the address of this step, or for one
// that it had before, or whether it is being imported.
func (j *job) owns(f vmFile) bool {
	if f.Owner == nil { // somebody took the mark off what the record names
		return j.marksAnew() || j.Prior != cty.NilVal && j.Op != opDefine
	}
	return j.Bears(f.Owner.Address) && f.oursFor(j.settings.Project, f.Owner.Address)
}

// expected fails unless the VM is just as the plan, or the step before, left it.
func (j *job) expected() error {
	now := ""
	if j.seen != nil {
		now = j.seen.fingerprint()
	}
	return j.stale(now, "VM", j.Name)
}

// stale fails unless now, the fingerprint of the object, is the expected one.
func (t *task) stale(now, what, name string) error {
	if now == t.Expect {
		return nil
	}
	f := &providers.Failure{Outcome: providers.Stale, Code: "stale_plan", Next: []string{"vmctl plan"}}
	switch {
	case t.Expect == "":
		f.Err = fmt.Errorf("%s %s: %s %s (%s) exists, and the plan was made when it did not", t.Op, t.Address, what, name, t.Object)
	case now == "":
		f.Err = fmt.Errorf("%s %s: %s %s (%s) is gone since the plan was made", t.Op, t.Address, what, name, t.Object)
	default:
		f.Seen = differences(t.Expect, now)
		f.Err = fmt.Errorf("%s %s: %s %s was changed since the plan was made", t.Op, t.Address, what, name)
	}
	return f
}

// there fails unless the VM is just as expected, and exists.
func (j *job) there() error {
	if err := j.expected(); err != nil {
		return err
	}
	if j.seen == nil {
		return fail(errAbsent, "%s %s", j.Op, j.Name)
	}
	return nil
}

// result reads the VM once more and says what it came to.
func (j *job) result(ctx context.Context, how providers.How, evidence ...string) (providers.Result, error) {
	if err := j.see(ctx); err != nil {
		return providers.Result{}, err
	}
	if j.seen == nil {
		return providers.Result{ID: j.Object, Gone: true, How: how, Evidence: evidence}, nil
	}
	running := j.seen.state == providers.StateRunning
	return providers.Result{
		ID: j.Object, Values: cty.ObjectVal(j.seen.computed()), Running: &running,
		Fingerprint: j.seen.fingerprint(), How: how, Evidence: evidence,
	}, nil
}
