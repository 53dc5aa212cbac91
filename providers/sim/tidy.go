package sim

import (
	"context"
	"errors"
	"fmt"

	"vmctl/internal/atomicfile"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// isFree reports whether nobody holds the disk of the VM.
func (j *job) isFree() bool { return j.seen != nil && j.seen.lock.verdict == lockFree }

// release frees the disk of a VM from a holder that is confirmed to be gone.
func (j *job) release(context.Context) (*guard.Outcome, error) {
	free, err := j.unlock(j.rootLock(j.Name))
	if err == nil && !free {
		err = errors.New(j.seen.lock.evidence)
	}
	if err != nil {
		return nil, fail(err, "free the disk of %s", j.Name)
	}
	return guard.Did(providers.Done, j.seen.lock.evidence), nil
}

// clearing removes what is left of a VM that is gone, or of the last run of one that is off.
func (j *job) clearing() guard.Verb {
	if machine.ArgsOf(j.Step).RunOnly {
		return guard.Verb{Done: guard.If(func() bool { return j.seen != nil && j.seen.described(anyName).IsTidy() }, "nothing is left"), Act: j.tidy}
	}
	return guard.Verb{Need: guard.Expected, Act: j.clear}
}

// tidy removes the remains of the last run of a VM that is off.
func (j *job) tidy(context.Context) (*guard.Outcome, error) {
	if j.seen.on() {
		return nil, &providers.Problem{
			Outcome: providers.Unsafe, Code: "still_running", Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("tidy up after %s: it is %s", j.Address, j.seen.state),
		}
	}
	if err := j.runner().forgetRun(j.seen.vmFile); err != nil {
		return nil, fail(err, "tidy up after the last run of %s", j.Name)
	}
	return guard.Did(providers.Done, j.seen.leftover), nil
}

// clear removes the remains of a VM that is gone: the files of its processes, and its inside. Its own
// file is gone already.
func (j *job) clear(context.Context) (*guard.Outcome, error) {
	f := vmFile{ID: j.Object, Name: j.Name}
	err := errors.Join(j.reclaim(f), atomicfile.Remove(j.logPath(f.ID)), j.removeInside(f.ID), j.dropReserved())
	if err == nil && !machine.ArgsOf(j.Step).ThenMake {
		err = j.sweep()
	}
	if err != nil {
		return nil, fail(err, "remove what is left of %s", j.Name)
	}
	return &guard.Outcome{How: providers.Done, NotGone: machine.ArgsOf(j.Step).ThenMake}, nil
}
