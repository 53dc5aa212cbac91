package lima

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/atomicfile"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// delete removes an instance that is off: it frees the disks that it has locked, lets Lima's driver
// forget it, and removes its folder, the mark last.
func (j *job) delete(ctx context.Context) (*guard.Outcome, error) {
	if j.seen == nil {
		did, err := j.removeRemains(ctx)
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
			Outcome: providers.Unsafe, Code: "protected", Next: j.unprotect(j.Name),
			Err: fmt.Errorf("delete %s: the instance %s is protected by limactl", j.Address, j.Name),
		}
	}
	if err := refuseLink(j.dir(j.Name)); err != nil {
		return nil, fail(err, "delete %s", j.Name)
	}
	if err := j.checkNext(ctx); err != nil {
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
	did, err := j.unregister(ctx)
	if err != nil {
		return nil, fail(err, "delete %s", j.Name)
	}
	removed = append(removed, did...)
	if _, err := j.reclaim(ctx); err != nil { // somebody may have started it meanwhile
		return nil, fail(err, "delete %s", j.Name)
	}
	if err := j.locked(ctx, func() error { return j.removeFolder(j.dir(j.Name), j.seen.mark) }); err != nil {
		return nil, fail(err, "delete %s", j.Name)
	}
	if err := j.forgetKeys(); err != nil {
		return nil, fail(err, "tidy up after %s, which is deleted", j.Name)
	}
	return guard.Did(providers.Done, removed...), nil
}

// removeFolder removes the folder of an instance or a disk, its mark last: the object exists as long
// as that, and the deletion can be repeated. What an interruption leaves has the name of an attempt to make it. It
// refuses a link, and a folder that bears another mark than m by now, and removes nothing then. The caller holds the lock of the home.
func (p *Provider) removeFolder(dir string, m *mark) error {
	if err := refuseLink(dir); err != nil {
		return err
	}
	if now, err := readMark(filepath.Join(dir, markName)); err == nil && (m == nil || now.ID != m.ID) {
		return fmt.Errorf("%s is of another object by now: %s", dir, now.ID)
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
	if m != nil { // it loses its name at once: a folder without a mark would be nobody's
		gone := beside(dir, makingTemp+string(m.ID))
		if err := errors.Join(removeTree(gone), os.Rename(dir, gone)); err != nil {
			return err
		}
		dir = gone
	}
	if err := removeTree(dir); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(dir))
}

// beside returns the path of a folder in the same parent as another one.
func beside(dir, name string) string { return filepath.Join(filepath.Dir(dir), name) }

// refuseLink fails if a folder is a symbolic link: what it leads to may be used by others.
func refuseLink(dir string) error {
	target, err := os.Readlink(dir)
	if err != nil { // it is none
		return nil
	}
	return fmt.Errorf("%s is a symbolic link to %s: remove both yourself, or put the folder into the place of the link", dir, target)
}

// checkNext fails if the change could not write the definition, or make the instance, that it is to write or make
// after this step: nothing is taken down or removed for it then. Disks may still be missing: they are made later. A
// definition that depends on what is made later is not checked.
func (j *job) checkNext(ctx context.Context) error {
	args := machine.ArgsOf(j.Step)
	err := errors.Join(j.checkKeys(), j.successorFits(ctx))
	if err != nil || !args.ThenRedefine && !args.ThenMake || j.Want == cty.NilVal {
		return err
	}
	next := *j
	next.Args = nil // no key is made for it now
	if args.ThenMake {
		next.seen = nil
	}
	if next.want, err = machine.Decode(j.Want); err != nil {
		return err
	}
	w, _, err := next.definition(ctx)
	if err != nil {
		return fail(err, "%s %s", j.Op, j.Name)
	}
	return next.checkDefinition(ctx, w.text)
}

// successorFits fails if the replacement of the instance could not get its name.
func (j *job) successorFits(ctx context.Context) error {
	next := machine.ArgsOf(j.Step)
	if next.NextName == "" {
		return nil
	}
	s, err := j.readInstance(ctx, next.NextName, found{wsl: j.readWSL(ctx)})
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
