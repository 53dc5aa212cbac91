package machine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// SeenDisk is a disk as a system was seen to have it.
type SeenDisk struct {
	ID       providers.ID
	Name     string
	Mark     *providers.Mark
	Path     string
	Size     uint64  // bytes, as a guest sees it
	Format   string  // "": not known
	FSType   *string // the file system that the system makes on it, "" if it makes none; nil: not known
	Claims   []providers.Claim
	Findings []providers.Finding
}

// Values returns the attributes that the system sets.
func (s SeenDisk) Values() map[string]cty.Value {
	return map[string]cty.Value{"id": cty.StringVal(string(s.ID)), "path": cty.StringVal(s.Path)}
}

// Object describes the disk for the planner.
func (s SeenDisk) Object() providers.Object {
	all := map[string]cty.Value{"size": cty.NumberUIntVal(s.Size)}
	if s.Format != "" {
		all["format"] = cty.StringVal(s.Format)
	}
	if s.FSType != nil {
		all["fs_type"] = cty.NullVal(cty.String)
		if *s.FSType != "" {
			all["fs_type"] = cty.StringVal(*s.FSType)
		}
	}
	maps.Copy(all, s.Values())
	return providers.Object{
		Kind: spec.Disk, ID: s.ID, Name: s.Name, Owner: s.Mark, Attrs: cty.ObjectVal(all), Holds: s.Claims,
		Unreadable: map[string]string{}, Findings: s.Findings, Fingerprint: s.Fingerprint(),
	}
}

// Fingerprint covers the facts that a step on the disk relies on. It leaves out its lock and its
// users, which come and go: a plan takes a disk from one VM and gives it to another.
func (s SeenDisk) Fingerprint() string {
	var p guard.Print
	p.Add("id", string(s.ID))
	p.Add("path", s.Path)
	p.Add("size", strconv.FormatUint(s.Size, 10))
	p.Add("format", s.Format)
	p.AddMark(s.Mark)
	return p.String()
}

// IsFree reports whether nobody holds the disk who is gone, or of whom that is not known.
func (s *SeenDisk) IsFree() bool {
	return s != nil && !slices.ContainsFunc(s.Findings, func(f providers.Finding) bool {
		return f.Kind == providers.FindStaleLock || f.Kind == providers.FindHeldLock
	})
}

// Locked returns the failure of a step on a disk that somebody holds.
func Locked(w providers.Work, evidence string) error {
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "disk_locked", Seen: []string{evidence}, Next: providers.Vmctl("plan"),
		Err: fmt.Errorf("%s %s: somebody holds the disk %s", w.Op, w.Address, w.Name),
	}
}

// Guarded returns the disk as a guard sees it.
func (s SeenDisk) Guarded() *guard.Seen {
	return &guard.Seen{ID: s.ID, Name: s.Name, Mark: s.Mark, Fingerprint: s.Fingerprint()}
}
