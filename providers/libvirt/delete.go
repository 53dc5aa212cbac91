package libvirt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"vmctl/providers"
	"vmctl/providers/guard"
)

// delete removes the domain, its files and its keys, and also the pool that vmctl made if it
// is empty then.
func (j *job) delete(ctx context.Context) (*guard.Outcome, error) {
	how, pools := providers.AlreadyGone, j.candidatePools()
	var keep, evidence []string
	var err error
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
		if pools, err = j.pools(ctx); err != nil {
			return nil, fail(err, "find the pools of %s", j.Name)
		}
		if err := j.successorFits(ctx); err != nil {
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
			if left := d.Owner; left != nil && len(left.Kept) > 0 {
				evidence = append(evidence, "what it had when it was imported stays: "+strings.Join(left.Kept, ", "))
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
	if err = errors.Join(err, j.forgetKeys(ctx, string(j.Object), j.Name)); err != nil {
		return nil, fail(err, "tidy up after %s, which is deleted", j.Name)
	}
	return guard.Did(how, evidence...), nil
}

// removeFiles removes the volumes of a domain that does not exist, and the pool that vmctl
// made if it is empty then. It keeps the volumes that keep lists.
func (j *job) removeFiles(ctx context.Context, pools []string, keep ...string) ([]string, error) {
	j.storage.Lock()
	defer j.storage.Unlock()
	var evidence []string
	for _, name := range pools {
		removed, err := j.removeVolumes(ctx, name, keep)
		if err != nil {
			return nil, err
		}
		images, err := j.removeUnusedImages(ctx, name)
		if err != nil {
			return nil, err
		}
		removed = append(removed, images...)
		if len(removed) > 0 {
			evidence = append(evidence, "removed volumes: "+strings.Join(removed, ", "))
		}
		emptied, err := j.removeEmptyPool(ctx, name)
		if err != nil {
			return nil, err
		}
		if emptied {
			evidence = append(evidence, "removed the empty pool "+name)
		}
	}
	return evidence, nil
}
