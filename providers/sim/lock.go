package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vmctl/internal/atomicfile"
	"vmctl/internal/process"
	"vmctl/providers"
)

// holder is the content of a lock: the VM and the process that use the disk.
type holder struct {
	VM      providers.ID     `json:"vm"`
	Process process.Identity `json:"process"`
}

// take locks a disk for the process that runs its VM. The lock is a symbolic link whose
// target is the holder, so that it is made whole or not at all.
func (h holder) take(path string) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	err = os.Symlink(string(text), path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the disk is locked: %s", path)
	}
	return err
}

// diskLocks lists the holders of the locks of disks, by the names of the disks, as far as
// they can be read.
func (p *Provider) diskLocks() map[string]holder {
	names, err := p.named(disksDir, diskSuffix+lockSuffix)
	if err != nil {
		return nil // the disks will say so
	}
	all := map[string]holder{}
	for _, name := range names {
		if h, err := readLock(p.diskLock(name)); err == nil {
			all[name] = h
		}
	}
	return all
}

// readLock reads the holder of a lock. A missing lock is fs.ErrNotExist.
func readLock(path string) (holder, error) {
	var h holder
	text, err := os.Readlink(path)
	if err != nil {
		return h, err
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&h); err != nil {
		return h, fmt.Errorf("read %s: %w", path, err)
	}
	return h, nil
}

// lockVerdict is the verdict on a disk's lock, from the point of view of its VM.
type lockVerdict string

const (
	lockFree  lockVerdict = ""
	lockOwn   lockVerdict = "own"   // a process of the VM holds it
	lockStale lockVerdict = "stale" // its holder is gone
	lockHeld  lockVerdict = "held"  // somebody else holds it, or the holder is unknown
)

// lock is a disk's lock, as seen.
type lock struct {
	verdict  lockVerdict
	holder   holder
	known    bool   // the holder could be read, and runs
	evidence string // in words
}

// observeLock reads a lock; alive are the processes that may hold it.
func (p *Provider) observeLock(path string, alive []process.Identity) lock {
	h, err := readLock(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lock{}
	case err != nil:
		return lock{verdict: lockHeld, evidence: "it cannot be told who holds its disk: " + err.Error()}
	case contains(alive, h.Process):
		return lock{verdict: lockOwn, holder: h, known: true}
	}
	verdict, reason := p.processes.Verify(h.Process)
	switch verdict {
	case process.Gone, process.Reused:
		return lock{verdict: lockStale, holder: h, evidence: fmt.Sprintf("%s names a process that is gone: %s", path, reason)}
	case process.Match:
		return lock{verdict: lockHeld, holder: h, known: true, evidence: fmt.Sprintf("%s names a process that runs: %s", path, reason)}
	case process.Unknown:
		return lock{verdict: lockHeld, holder: h, evidence: fmt.Sprintf("it cannot be told whether the holder of %s runs: %s", path, reason)}
	default:
		panic("unknown verdict " + string(verdict))
	}
}

// unlock removes a lock only if its holder is confirmed to be gone. It reports whether the
// disk is free.
func (p *Provider) unlock(path string) (free bool, err error) {
	switch l := p.observeLock(path, nil); l.verdict {
	case lockFree:
		return true, nil
	case lockStale:
		return true, atomicfile.Remove(path)
	case lockHeld, lockOwn:
		return false, nil
	default:
		panic("unknown verdict " + string(l.verdict))
	}
}

// object returns the holder as an object for the planner: it holds the claim, and is not
// vmctl's.
func (l lock) object(claim providers.Claim) providers.Object {
	o := providers.Object{
		Kind: kindProcess, ID: "holder of " + providers.ID(claim.Key), Name: "unknown", Holds: []providers.Claim{claim},
		Fingerprint: string(l.verdict),
	}
	if l.holder.Process.PID != 0 {
		o.ID = providers.ID(fmt.Sprintf("pid %d", l.holder.Process.PID))
		o.Name = filepath.Base(l.holder.Process.Argv0)
	}
	if l.verdict == lockStale {
		o.ID += ", which is gone"
	}
	return o
}

func lockClaim(name string) providers.Claim { return providers.Claim{Kind: claimLock, Key: name} }
