package lima

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vmctl/internal/atomicfile"
	"vmctl/providers"
)

// lockVerdict is the verdict on a disk's lock.
type lockVerdict string

const (
	lockFree  lockVerdict = ""
	lockUsed  lockVerdict = "used"  // the instance that holds it runs
	lockStale lockVerdict = "stale" // its holder is off, or gone
	lockHeld  lockVerdict = "held"  // it is not known whether its holder runs
)

// lock is the lock of a disk, as it was seen. Lima makes it when it starts an instance, and removes
// it when the host agent ends.
type lock struct {
	verdict  lockVerdict
	target   string // the folder that it names
	holder   string // the instance of this home; "": it names another folder
	evidence string // in words
}

// readLock reads the target of a disk's lock; fs.ErrNotExist: there is none.
func (p *Provider) readLock(disk string) (target, holder string, err error) {
	path := p.diskPath(disk, lockName)
	target, err = os.Readlink(path)
	if err != nil {
		return "", "", err
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(p.diskDir(disk), target)
	}
	if p.isHome(filepath.Dir(target)) {
		holder = filepath.Base(target)
	}
	return target, holder, nil
}

// readLocks lists the disks that each instance of the home has locked.
func (p *Provider) readLocks() map[string][]string {
	disks, err := p.names(filepath.Join(p.home, disksDir))
	if err != nil {
		return nil // the disks themselves say so
	}
	all := map[string][]string{}
	for _, disk := range disks {
		if _, holder, err := p.readLock(disk); err == nil && holder != "" {
			all[holder] = append(all[holder], disk)
		}
	}
	return all
}

// lockOf judges the lock of a disk. stateOf returns the run state of an instance, and whether the
// home has such an instance.
func (p *Provider) lockOf(disk string, stateOf func(instance string) (state string, there bool)) lock {
	path := p.diskPath(disk, lockName)
	target, holder, err := p.readLock(disk)
	l := lock{target: target, holder: holder}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lock{}
	case err != nil:
		l.verdict, l.evidence = lockHeld, fmt.Sprintf("it cannot be told who holds the disk: %v", err)
		return l
	case holder == "" && !exists(target):
		l.verdict, l.evidence = lockStale, fmt.Sprintf("%s names %s, which does not exist", path, target)
		return l
	case holder == "":
		l.verdict, l.evidence = lockHeld, fmt.Sprintf("%s names %s, an instance of another home", path, target)
		return l
	}
	state, there := stateOf(holder)
	switch {
	case !there:
		l.verdict, l.evidence = lockStale, fmt.Sprintf("%s names the instance %s, which does not exist", path, holder)
	case state == providers.StateOff:
		l.verdict, l.evidence = lockStale, fmt.Sprintf("%s names the instance %s, which is off", path, holder)
	case state == stateUnknown:
		l.verdict, l.evidence = lockHeld, fmt.Sprintf("%s names the instance %s, and it cannot be told whether that runs", path, holder)
	default:
		l.verdict, l.evidence = lockUsed, fmt.Sprintf("the instance %s has it, and is %s", holder, state)
	}
	return l
}

// unlock removes the lock of a disk that still names the same holder as when that was found to be
// gone.
func (p *Provider) unlock(disk, target string) error {
	path := p.diskPath(disk, lockName)
	now, err := os.Readlink(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case now != target && filepath.Join(p.diskDir(disk), now) != target:
		return fmt.Errorf("%s names another holder by now: %s", path, now)
	}
	return atomicfile.Remove(path)
}

// releaseLocks removes the locks of all disks that an instance holds, which is confirmed to be off:
// whatever its definition says by now. It returns the names of the disks.
func (p *Provider) releaseLocks(instance string) ([]string, error) {
	var errs []error
	var freed []string
	for _, disk := range p.readLocks()[instance] {
		target, holder, err := p.readLock(disk)
		if err == nil && holder == instance {
			err = p.unlock(disk, target)
		}
		if err == nil {
			freed = append(freed, disk)
		}
		errs = append(errs, err)
	}
	return freed, errors.Join(errs...)
}

// object returns a holder that is no instance of this home as an object for the planner.
func (l lock) object(disk string) providers.Object {
	return providers.Object{
		Kind: kindHolder, ID: providers.ID("holder of " + disk + ": " + l.target), Name: filepath.Base(l.target),
		Holds: []providers.Claim{lockClaim(disk)}, Fingerprint: string(l.verdict),
	}
}

// kindHolder is the kind of the holder of a lock: a folder of an instance, which may be gone.
const kindHolder = "instance"
