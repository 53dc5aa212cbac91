package sim

import (
	"fmt"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// described returns the disk, whose file is at a path, in a spec's words.
func (s observedDisk) described(path string) machine.SeenDisk {
	return machine.SeenDisk{
		ID: s.ID, Name: s.Name, Mark: s.Owner.mark(), Path: path, Size: s.size, Format: s.As,
		Claims: []providers.Claim{diskNameClaim(s.Name)}, Findings: s.findings(),
	}
}

// findings returns the problems of a disk.
func (s observedDisk) findings() []providers.Finding {
	var all []providers.Finding
	add := func(kind providers.FindingKind, action, evidence string) {
		f := providers.Finding{Kind: kind, Object: s.Name, Evidence: []string{evidence}, Action: action}
		if s.Owner != nil {
			f.Address = s.Owner.Address
		}
		if kind == providers.FindStaleLock || kind == providers.FindHeldLock {
			f.Claim = diskLockClaim(s.Name)
		}
		all = append(all, f)
	}
	switch s.lock.verdict {
	case lockStale:
		add(providers.FindStaleLock, "released, unless on_stale_lock = \"refuse\"", s.lock.evidence)
	case lockHeld:
		add(providers.FindHeldLock, "left alone: its holder has to end first", s.lock.evidence)
	case lockFree, lockOwn:
	default:
		panic("unknown verdict " + string(s.lock.verdict))
	}
	if s.copyOf != "" {
		add(providers.FindCopy, "left alone", fmt.Sprintf("its mark was written for the disk %s (%s)", s.copyOf, s.Owner.Of))
	}
	return all
}
