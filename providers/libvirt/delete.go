package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"vmctl/providers"
	"vmctl/providers/guard"
)

// delete removes the domain, its files and its keys, and also the pool that vmctl made if it
// is empty then.
func (j *job) delete(ctx context.Context) (*guard.Outcome, error) {
	how := providers.AlreadyGone
	var keep, evidence []string
	pools, err := j.pools(ctx)
	if err != nil {
		return nil, err
	}
	if j.seen != nil {
		if j.seen.power.on() {
			return nil, &providers.Problem{
				Outcome: providers.Unsafe, Code: "still_running",
				Err: fmt.Errorf("delete %s: it is %s", j.Address, j.seen.power.Words),
			}
		}
		if err := j.unlayered(); err != nil {
			return nil, err
		}
		if err := j.successorFits(ctx); err != nil {
			return nil, err
		}
		if err := j.filesAreListed(ctx); err != nil {
			return nil, err
		}
		if evidence, err = j.removeRoot(ctx); err != nil {
			return nil, err
		}
		if err := j.Undefine(ctx, j.seen.UUID); err != nil && !errors.Is(err, errAbsent) {
			return nil, fail(err, "delete %s", j.Name)
		}
		if _, err := j.Domain(ctx, j.seen.UUID); !errors.Is(err, errAbsent) {
			return nil, fail(errors.Join(errors.New("it is still there"), err), "delete %s", j.Name)
		}
		how = providers.Done
		if d := j.seen.configured; d.isForeign() { // its log and its disks are not vmctl's
			keep = append(keep, d.ConsoleLog)
			if kept := d.mark().Kept; len(kept) > 0 {
				evidence = append(evidence, "what it had when it was imported stays: "+strings.Join(kept, ", "))
			}
		}
	}
	if j.seen == nil {
		if keep, evidence, err = j.writtenRoots(ctx, pools); err != nil {
			return nil, err
		}
	}
	removed, err := j.removeFiles(ctx, pools, keep...)
	evidence = append(evidence, removed...)
	if err = errors.Join(err, j.release(ctx, nil), j.forgetKeys(ctx, string(j.Object), j.Name)); err != nil {
		return nil, fail(err, "tidy up after %s, which is deleted", j.Name)
	}
	return guard.Did(how, evidence...), nil
}

// filesAreListed fails if a file that vmctl made for the domain is in a pool that is not
// active: the file would stay, with the keys in it, and nobody would know.
func (j *job) filesAreListed(ctx context.Context) error {
	o := j.seen.mark()
	for _, file := range append(o.ownFiles(), o.Boot.Kernel, o.Boot.Initrd) {
		if file == "" || o.Imported {
			continue
		}
		if _, err := j.locate(ctx, j.connection, file); err != nil && !errors.Is(err, errAbsent) {
			return fail(err, "delete %s: find its file %s", j.Address, file)
		}
	}
	return nil
}

// removeFiles removes the volumes of a domain that does not exist, and what is of no use
// without them. It keeps the volumes that keep lists.
func (j *job) removeFiles(ctx context.Context, pools []pool, keep ...string) (evidence []string, err error) {
	for _, in := range pools {
		removed, err := j.removeOwn(ctx, in, keep)
		if err != nil {
			return nil, err
		}
		tidied, err := j.tidy(ctx, in, removed)
		if err != nil {
			return nil, err
		}
		evidence = append(evidence, tidied...)
	}
	return evidence, nil
}

// tidy removes the images of a pool that no disk begins from, and the pool that vmctl made if
// it is empty then. It reports them together with the volumes that were removed before.
func (j *job) tidy(ctx context.Context, in pool, removed []string) (evidence []string, err error) {
	images, err := j.removeUnusedImages(ctx, in)
	if err != nil {
		return nil, err
	}
	if removed = append(removed, images...); len(removed) > 0 {
		evidence = append(evidence, "removed volumes: "+strings.Join(removed, ", "))
	}
	emptied, err := j.removeEmptyPool(ctx, in)
	return append(evidence, emptied...), err
}

// clearRemains removes the files of an earlier domain of the name, which is gone. It fails if
// it cannot remove them: nothing is made beside them.
func (j *job) clearRemains(ctx context.Context) ([]string, error) {
	pools, err := j.pools(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, in := range pools {
		if err := j.rootIsFree(ctx, in); err != nil {
			return nil, err
		}
		removed, err := j.removeOwn(ctx, in, nil)
		if err != nil {
			f := fail(err, "define %s: remove what an earlier one left", j.Address)
			f.Next = slices.Concat(
				providers.Say("see what is there: virsh -c "+j.location.URI+" vol-list "+in.Name),
				providers.SayVmctl("make the folder of the pool writable, then: ", "apply"),
			)
			return nil, f
		}
		all = append(all, removed...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return []string{"removed what an earlier one left: " + strings.Join(all, ", ")}, nil
}

// undo removes the files that a failed attempt made, unless a domain uses them, and returns
// the failure.
func (j *job) undo(ctx context.Context, cause error) (f *providers.Problem, undone bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	f = asFailure(cause, "define "+j.Name)
	if _, err := j.Domain(ctx, string(j.Object)); !errors.Is(err, errAbsent) {
		return f, false
	}
	f.Seen = append(f.Seen, staysBehind(errors.Join(j.removeMade(ctx), j.release(ctx, nil)))...)
	return f, true
}

// removeMade removes the files that the step made, the latest first, and what is of no use
// without them. It leaves all other files of the object: they may hold data.
func (j *job) removeMade(ctx context.Context) error {
	for _, f := range slices.Backward(j.made) {
		if _, err := f.remove(ctx, j.connection); err != nil {
			return err
		}
	}
	pools, err := j.pools(ctx)
	if err != nil {
		return err
	}
	for _, in := range pools {
		if _, err := j.tidy(ctx, in, nil); err != nil {
			return err
		}
	}
	return nil
}

func staysBehind(err error) []string {
	if err == nil {
		return nil
	}
	return []string{"what was made so far stays behind: " + err.Error()}
}
