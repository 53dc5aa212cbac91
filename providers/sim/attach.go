package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"vmctl/providers"
)

// disksThere fails unless every disk exists and is the wanted one.
func (j *job) disksThere(disks []attached) error {
	for _, a := range disks {
		d, err := j.observeDisk(a.Name, nil)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &providers.Problem{
				Outcome: providers.Failed, Code: "no_disk",
				Next: slices.Concat(providers.Say(fmt.Sprintf("put its disk back: %s", j.diskPath(a.Name))), providers.SayVmctl("or plan again: ", "plan")),
				Err:  fmt.Errorf("%s %s: its disk %s is gone", j.Op, j.Address, a.Name),
			}
		case err != nil:
			return fail(err, "%s %s: read its disk %s", j.Op, j.Address, a.Name)
		case !a.is(d):
			return &providers.Problem{
				Outcome: providers.Stale, Code: "stale_plan", Next: providers.Vmctl("plan"),
				Err: fmt.Errorf("%s %s: %s is another disk (%s) than it was (%s)", j.Op, j.Address, a.Name, d.ID, a.ID),
			}
		}
	}
	return nil
}

// free fails if another VM is defined with one of the disks.
func (j *job) free(disks []attached) error {
	if len(disks) == 0 {
		return nil
	}
	users, err := j.users(names(disks), j.Name)
	if err != nil {
		return fail(err, "%s %s: see who uses its disks", j.Op, j.Address)
	}
	for _, a := range disks {
		if by := users[a.Name]; len(by) > 0 {
			return j.inUse(a.Name, by)
		}
	}
	return nil
}

func (t *task) inUse(disk string, by []string) error {
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "disk_in_use",
		Next: slices.Concat(providers.Say("look at it: "+t.vmPath(by[0])), providers.Vmctl("plan")),
		Err:  fmt.Errorf("%s %s: the disk %s is in use by VM %s", t.Op, t.Address, disk, by[0]),
	}
}

// attach gives a running VM the disks that are new to it.
func (j *job) attach(ctx context.Context, f *vmFile) error {
	if j.seen == nil || j.seen.state != providers.StateRunning {
		return nil
	}
	return j.runner().attach(ctx, j, f)
}
