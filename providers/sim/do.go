package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

// job is one step under way.
type job struct {
	*Provider
	providers.Work
	want  config
	rules rules
	log   providers.Log
	fault fault
	seen  *sight // the VM when the step began; nil: there was none
}

// Do carries out one step.
func (p *Provider) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	j := &job{Provider: p, Work: w, rules: rulesOf(w.Policy), log: log}
	r, err := j.do(ctx)
	if err != nil {
		return providers.Result{}, asFailure(err, fmt.Sprintf("%s %s", w.Op, w.Address))
	}
	return r, nil
}

func (j *job) do(ctx context.Context) (providers.Result, error) {
	if err := j.clean(); err != nil {
		return providers.Result{}, err
	}
	if err := j.begin(ctx); err != nil {
		return providers.Result{}, err
	}
	if err := j.see(ctx); err != nil {
		return providers.Result{}, err
	}
	if err := j.mine(); err != nil {
		return providers.Result{}, err
	}
	switch j.Op {
	case opDefine, opRedefine, opStart:
		want, err := configOf(j.Want)
		if err != nil {
			return providers.Result{}, err
		}
		j.want = want
	case opWaitReady, opStop, opRecover, opDelete, opUnlock, opClear:
	default:
		panic("unknown operation " + j.Op)
	}
	switch j.Op {
	case opDefine:
		return j.define(ctx)
	case opRedefine:
		return j.redefine(ctx)
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
	return &providers.Failure{
		Outcome: providers.Unsafe, Code: "name_taken",
		Next: []string{"look at it: " + j.vmPath(by.Name), fmt.Sprintf("set another name in the block of %s", j.Address)},
		Err:  fmt.Errorf("%s %s: a VM of the name %s exists already (%s), and it is not the one to be made", j.Op, j.Address, by.Name, by.ID),
	}
}

// successorFits fails if what replaces the VM could not get its name: nothing is
// taken down or removed for it then.
func (j *job) successorFits() error {
	name := j.Args[argNextName]
	if name == "" {
		return nil
	}
	f, err := j.readVM(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fail(err, "%s %s: look for a VM of the name %s", j.Op, j.Address, name)
	case f.ID != providers.ID(j.Args[argNextID]):
		return j.nameTaken(f)
	}
	return nil
}

// mine fails unless the VM that was seen is the one that vmctl made for this
// address. Nothing else is ever acted on.
func (j *job) mine() error {
	if j.seen == nil || j.owns(j.seen.vmFile) {
		return nil
	}
	return &providers.Failure{
		Outcome: providers.Unsafe, Code: "not_ours", Next: []string{"look at it: " + j.vmPath(j.Name)},
		Err: fmt.Errorf("%s %s: VM %s (%s) does not bear the mark of %s", j.Op, j.Address, j.seen.Name, j.seen.ID, j.Address),
	}
}

// owns reports whether vmctl made a VM for the address of this step, or for one
// that it had before.
func (j *job) owns(f vmFile) bool {
	return f.Owner != nil && j.Bears(f.Owner.Address) && f.oursFor(j.settings.Project, f.Owner.Address)
}

// expected fails unless the VM is just as the plan, or the step before, left it.
func (j *job) expected() error {
	now := ""
	if j.seen != nil {
		now = j.seen.fingerprint()
	}
	if now == j.Expect {
		return nil
	}
	f := &providers.Failure{Outcome: providers.Stale, Code: "stale_plan", Next: []string{"vmctl plan"}}
	switch {
	case j.Expect == "":
		f.Err = fmt.Errorf("%s %s: VM %s (%s) exists, and the plan was made when it did not", j.Op, j.Address, j.seen.Name, j.seen.ID)
	case now == "":
		f.Err = fmt.Errorf("%s %s: VM %s (%s) is gone since the plan was made", j.Op, j.Address, j.Name, j.Object)
	default:
		f.Seen = differences(j.Expect, now)
		f.Err = fmt.Errorf("%s %s: VM %s was changed since the plan was made", j.Op, j.Address, j.seen.Name)
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

// define makes a VM. One that an interrupted attempt left half made is
// completed.
func (j *job) define(ctx context.Context) (providers.Result, error) {
	if j.seen == nil {
		if err := j.expected(); err != nil {
			return providers.Result{}, err
		}
		return j.put(ctx, vmFile{ID: j.Object, Name: j.Name, Weightless: j.weightless})
	}
	if j.isWanted() {
		return j.result(ctx, providers.AlreadyTrue, "it exists")
	}
	return j.put(ctx, j.seen.vmFile)
}

// redefine changes what the next start will use.
func (j *job) redefine(ctx context.Context) (providers.Result, error) {
	if j.seen != nil && j.isWanted() {
		return j.result(ctx, providers.AlreadyTrue, "it is as wanted")
	}
	if err := j.there(); err != nil {
		return providers.Result{}, err
	}
	return j.put(ctx, j.seen.vmFile)
}

// isWanted reports whether the VM's file says what is wanted.
func (j *job) isWanted() bool {
	return j.seen.onDisk && j.seen.Config != nil && reflect.DeepEqual(*j.seen.Config, j.want) &&
		j.seen.Owner.Generation == j.Generation && j.seen.Owner.Address == j.Address
}

// put writes a VM's file: the mark first, then what belongs to it, and then what
// was wanted, which makes it whole.
func (j *job) put(ctx context.Context, f vmFile) (providers.Result, error) {
	p := j.settings.Project
	f.Owner = &owner{ID: p.Lineage(), Project: p.Name, Address: j.Address, Of: f.ID, Generation: j.Generation}
	half := f
	half.Config = nil
	if j.half() {
		return providers.Result{}, errors.Join(j.injected(), j.writeVM(half))
	}
	if f.Config == nil && !f.Weightless {
		if err := errors.Join(j.writeVM(half), j.makeDisk(f)); err != nil {
			return providers.Result{}, fail(err, "%s %s", j.Op, j.Name)
		}
	}
	f.Config = &j.want
	if err := j.writeVM(f); err != nil {
		return providers.Result{}, fail(err, "%s %s", j.Op, j.Name)
	}
	return j.result(ctx, providers.Done)
}

// delete removes the VM with all that belongs to it, its own file last: as long
// as that is there the VM exists, and deleting it can be done again.
func (j *job) delete() (providers.Result, error) {
	if j.seen == nil {
		return providers.Result{ID: j.Object, Gone: true, How: providers.AlreadyGone}, nil
	}
	if err := j.expected(); err != nil {
		return providers.Result{}, err
	}
	switch {
	case j.seen.on():
		return providers.Result{}, &providers.Failure{
			Outcome: providers.Unsafe, Code: "still_running", Next: []string{"vmctl plan"},
			Err: fmt.Errorf("delete %s: it is %s", j.Address, j.seen.state),
		}
	case j.seen.lock.verdict == lockHeld:
		return providers.Result{}, &providers.Failure{
			Outcome: providers.Unsafe, Code: "disk_locked", Seen: []string{j.seen.lock.evidence}, Next: []string{"vmctl plan"},
			Err: fmt.Errorf("delete %s: somebody else holds its disk", j.Address),
		}
	}
	if err := j.successorFits(); err != nil {
		return providers.Result{}, err
	}
	if err := j.forgetRun(j.seen.vmFile); err != nil {
		return providers.Result{}, fail(err, "delete %s", j.Name)
	}
	if j.half() {
		return providers.Result{}, j.injected()
	}
	if err := j.removeAll(j.seen.vmFile); err != nil {
		return providers.Result{}, fail(err, "delete %s", j.Name)
	}
	if err := j.sweep(); err != nil {
		return providers.Result{}, fail(err, "tidy up after %s, which is deleted", j.Name)
	}
	return providers.Result{ID: j.Object, Gone: true, How: providers.Done}, nil
}

func (j *job) removeAll(f vmFile) error {
	if !f.Weightless {
		if _, err := j.unlock(f.Name); err != nil {
			return err
		}
		if err := errors.Join(remove(j.logPath(f.ID)), remove(j.diskPath(f.Name))); err != nil {
			return err
		}
	}
	return remove(j.vmPath(f.Name))
}

// release frees the disk of a VM from a holder that is confirmed to be gone.
func (j *job) release(ctx context.Context) (providers.Result, error) {
	if j.seen != nil && j.seen.lock.verdict == lockFree {
		return j.result(ctx, providers.AlreadyTrue, "its disk is free")
	}
	if err := j.there(); err != nil {
		return providers.Result{}, err
	}
	free, err := j.unlock(j.Name)
	if err == nil && !free {
		err = errors.New(j.seen.lock.evidence)
	}
	if err != nil {
		return providers.Result{}, fail(err, "free the disk of %s", j.Name)
	}
	return j.result(ctx, providers.Done, j.seen.lock.evidence)
}

// tidy removes what the last run of a VM left that is off.
func (j *job) tidy(ctx context.Context) (providers.Result, error) {
	if j.seen != nil && !j.seen.on() {
		if j.seen.leftover == "" {
			return j.result(ctx, providers.AlreadyTrue, "nothing is left")
		}
		if err := j.expected(); err != nil {
			return providers.Result{}, err
		}
		if err := j.forgetRun(j.seen.vmFile); err != nil {
			return providers.Result{}, fail(err, "tidy up after the last run of %s", j.Name)
		}
		return j.result(ctx, providers.Done, j.seen.leftover)
	}
	if err := j.there(); err != nil {
		return providers.Result{}, err
	}
	return providers.Result{}, &providers.Failure{
		Outcome: providers.Unsafe, Code: "still_running", Next: []string{"vmctl plan"},
		Err: fmt.Errorf("tidy up after %s: it is %s", j.Address, j.seen.state),
	}
}

// clear removes what is left of a VM that is gone: the files of its processes.
// Neither its own file nor its disk is left, or it would not be gone.
func (j *job) clear(ctx context.Context) (providers.Result, error) {
	if j.Args[argKeep] != "" {
		return j.tidy(ctx)
	}
	if err := j.expected(); err != nil {
		return providers.Result{}, err
	}
	f := vmFile{ID: j.Object, Name: j.Name}
	err := errors.Join(j.reclaim(f), remove(j.logPath(f.ID)))
	if err == nil && j.Args[argThenMake] == "" {
		err = j.sweep()
	}
	if err != nil {
		return providers.Result{}, fail(err, "remove what is left of %s", j.Name)
	}
	return providers.Result{ID: j.Object, Gone: j.Args[argThenMake] == "", How: providers.Done}, nil
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

// errAbsent says that the VM does not exist.
var errAbsent = errors.New("it does not exist")

// fail makes a failure of what went wrong.
func fail(err error, format string, args ...any) *providers.Failure {
	f := &providers.Failure{Outcome: providers.Failed, Code: "host", Next: []string{"vmctl plan"}}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.Outcome, f.Code = providers.Timeout, "no_answer"
	case errors.Is(err, errAbsent):
		f.Code = "absent"
	}
	f.Err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
	return f
}

// asFailure makes sure that Do's error is a failure.
func asFailure(err error, doing string) error {
	var f *providers.Failure
	if errors.As(err, &f) {
		return f
	}
	return fail(err, "%s", doing)
}
