package sim

import (
	"fmt"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// object describes a disk for the planner.
func (s observedDisk) object(path string) providers.Object {
	return providers.Object{
		Kind: spec.Disk, ID: s.ID, Name: s.Name, Owner: s.Owner.mark(), Attrs: s.attrs(path),
		Holds: []providers.Claim{diskNameClaim(s.Name)}, Unreadable: map[string]string{}, Findings: s.findings(), Fingerprint: s.fingerprint(),
	}
}

func (s observedDisk) attrs(path string) cty.Value {
	all := s.computed(path)
	all["size"] = cty.NumberUIntVal(s.size)
	if s.As != "" {
		all["format"] = cty.StringVal(s.As)
	}
	return cty.ObjectVal(all)
}

func (s observedDisk) computed(path string) map[string]cty.Value {
	return map[string]cty.Value{"id": cty.StringVal(string(s.ID)), "path": cty.StringVal(path)}
}

// fingerprint leaves out the lock, which comes and goes with the VMs.
func (s observedDisk) fingerprint() string {
	var p guard.Print
	p.Add("id", string(s.ID))
	p.Add("name", s.Name)
	p.Add("size", strconv.FormatUint(s.size, 10))
	p.Add("format", s.As)
	p.AddMark(s.Owner.mark())
	return p.String()
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
