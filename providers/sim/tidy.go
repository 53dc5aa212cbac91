package sim

import (
	"context"
	"errors"
	"fmt"

	"vmctl/providers"
)

// release frees the disk of a VM from a holder that is confirmed to be gone.
func (j *job) release(ctx context.Context) (providers.Result, error) {
	if j.seen != nil && j.seen.lock.verdict == lockFree {
		return j.result(ctx, providers.AlreadyTrue, "its disk is free")
	}
	if err := j.there(); err != nil {
		return providers.Result{}, err
	}
	free, err := j.unlock(j.rootLock(j.Name))
	if err == nil && !free {
		err = errors.New(j.seen.lock.evidence)
	}
	if err != nil {
		return providers.Result{}, fail(err, "free the disk of %s", j.Name)
	}
	return j.result(ctx, providers.Done, j.seen.lock.evidence)
}

// tidy removes the remains of the last run of a VM that is off.
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
		Outcome: providers.Unsafe, Code: "still_running", Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("tidy up after %s: it is %s", j.Address, j.seen.state),
	}
}

// clear removes the remains of a VM that is gone: the files of its processes. Its own file
// and its disk are gone already.
func (j *job) clear(ctx context.Context) (providers.Result, error) {
	if j.Args[argKeep] != "" {
		return j.tidy(ctx)
	}
	if err := j.expected(); err != nil {
		return providers.Result{}, err
	}
	f := vmFile{ID: j.Object, Name: j.Name}
	err := errors.Join(j.reclaim(f), remove(j.logPath(f.ID)), j.dropReserved())
	if err == nil && j.Args[argThenMake] == "" {
		err = j.sweep()
	}
	if err != nil {
		return providers.Result{}, fail(err, "remove what is left of %s", j.Name)
	}
	return providers.Result{ID: j.Object, Gone: j.Args[argThenMake] == "", How: providers.Done}, nil
}
