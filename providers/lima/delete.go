package lima

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"vmctl/internal/atomicfile"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// delete removes an instance that is off: it frees the disks that it has locked, lets Lima's driver
// forget it, and removes its folder, the mark last.
func (j *job) delete(ctx context.Context) (*guard.Outcome, error) {
	if j.seen == nil {
		did, err := j.clear(ctx)
		if err == nil {
			did.How = providers.AlreadyGone
		}
		return did, err
	}
	switch {
	case j.seen.on():
		return nil, j.stillRuns()
	case j.seen.guarded:
		return nil, &providers.Problem{
			Outcome: providers.Unsafe, Code: "protected", Next: providers.Say("let it be removed: limactl unprotect " + j.Name),
			Err: fmt.Errorf("delete %s: the instance %s is protected by limactl", j.Address, j.Name),
		}
	}
	if err := refuseLink(j.dir(j.Name)); err != nil {
		return nil, fail(err, "delete %s", j.Name)
	}
	if err := j.successorFits(ctx); err != nil {
		return nil, err
	}
	removed, err := j.reclaim(ctx)
	if err != nil {
		return nil, fail(err, "free the disks of %s", j.Name)
	}
	if j.seen.doc != nil {
		if err := j.run(ctx, "delete", nil, "delete", j.Name); err != nil {
			return nil, err
		}
	}
	if _, err := j.reclaim(ctx); err != nil { // somebody may have started it meanwhile
		return nil, fail(err, "delete %s", j.Name)
	}
	if err := j.removeFolder(j.dir(j.Name)); err != nil {
		return nil, fail(err, "delete %s", j.Name)
	}
	if err := errors.Join(j.forgetKeys(), j.sweep()); err != nil {
		return nil, fail(err, "tidy up after %s, which is deleted", j.Name)
	}
	return guard.Did(providers.Done, removed...), nil
}

// removeFolder removes the folder of an instance or a disk, its mark last: the object exists as long
// as that, and the deletion can be repeated. It refuses a link, and removes nothing then.
func (p *Provider) removeFolder(dir string) error {
	if err := refuseLink(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == markName {
			continue
		}
		if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if err := atomicfile.Remove(filepath.Join(dir, markName)); err != nil {
		return err
	}
	if err := removeTree(dir); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(dir))
}

// refuseLink fails if a folder is a symbolic link: what it leads to may be used by others.
func refuseLink(dir string) error {
	target, err := os.Readlink(dir)
	if err != nil { // it is none
		return nil
	}
	return fmt.Errorf("%s is a symbolic link to %s: remove both yourself, or put the folder into the place of the link", dir, target)
}

// successorFits fails if the replacement of the instance could not get its name: nothing is taken down
// or removed for it then.
func (j *job) successorFits(ctx context.Context) error {
	next := machine.ArgsOf(j.Step)
	if next.NextName == "" {
		return nil
	}
	s, err := j.readInstance(ctx, next.NextName, found{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fail(err, "%s %s: look for an instance of the name %s", j.Op, j.Address, next.NextName)
	case j.isLeftover(s) || s.id == next.NextID:
		return nil
	default:
		return j.nameTaken(s)
	}
}

// removeTree removes a file or a folder with all that is in it. It follows no link.
func removeTree(path string) error { return os.RemoveAll(path) }

// isNotEmpty reports whether a folder could not be replaced because it has files in it.
func isNotEmpty(err error) bool { return errors.Is(err, syscall.ENOTEMPTY) }
