package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"vmctl/internal/atomicfile"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// delete removes the VM with all that belongs to it, its own file last: the VM exists as long
// as that file, and a deletion can be repeated.
func (j *job) delete(context.Context) (*guard.Outcome, error) {
	if j.seen == nil {
		return guard.Did(providers.AlreadyGone), nil
	}
	if err := j.deletable(); err != nil {
		return nil, err
	}
	if err := j.runner().forgetRun(j.seen.vmFile); err != nil {
		return nil, fail(err, "delete %s", j.Name)
	}
	if err := j.removeAll(j.seen.vmFile); err != nil {
		return nil, fail(err, "delete %s", j.Name)
	}
	if err := j.sweep(); err != nil {
		return nil, fail(err, "tidy up after %s, which is deleted", j.Name)
	}
	return guard.Did(providers.Done), nil
}

// deletable fails if the VM must not be deleted as it is.
func (j *job) deletable() error {
	switch {
	case j.seen == nil:
		return nil
	case j.seen.on():
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "still_running", Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("delete %s: it is %s", j.Address, j.seen.state),
		}
	case j.seen.lock.verdict == lockHeld:
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "disk_locked", Seen: []string{j.seen.lock.evidence}, Next: providers.Vmctl("plan"),
			Err: fmt.Errorf("delete %s: somebody else holds its disk", j.Address),
		}
	}
	return j.successorFits()
}

func (j *job) removeAll(f vmFile) error {
	if err := j.removeInside(f.ID); err != nil {
		return err
	}
	if err := j.runnerOf(f).discard(j, f); err != nil {
		return err
	}
	return atomicfile.Remove(j.vmPath(f.Name))
}

// successorFits fails if the VM's replacement could not get its name: nothing is taken down
// or removed for it then.
func (j *job) successorFits() error {
	next := machine.ArgsOf(j.Step)
	if next.NextName == "" {
		return nil
	}
	f, err := j.readVM(next.NextName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fail(err, "%s %s: look for a VM of the name %s", j.Op, j.Address, next.NextName)
	case f.ID != next.NextID:
		return j.nameTaken(f)
	}
	return nil
}
