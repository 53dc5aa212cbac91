package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"vmctl/providers"
)

// Leaks lists what vmctl made, locked, began or wrote down, and that nothing accounts for any more.
type Leaks struct {
	All    []Leak // by kind and address
	Unread []Leak // what could not be read: whether anything leaked there is not known
}

// Leak is one thing that leaked.
type Leak struct {
	providers.Finding
	// Goes says that a clean-up removes it without being told its address: it is an orphan that this data directory made, or the
	// record of an object that is gone.
	Goes bool
	// Orphan says that it is an object in neither the spec nor the state.
	Orphan bool
	System *System // that could not be read; nil: it is about one object
}

// orphan is an object that bears our mark and belongs to no address of the spec or the state.
type orphan struct {
	finding providers.Finding
	here    bool // this data directory made it
	taken   bool // its address has a block or a record, of another object
}

// orphan reports an object that is an orphan.
func (d *differ) orphan(system *System, o *providers.Object) {
	a := o.Owner.Address
	found := orphan{here: d.madeHere(o), finding: providers.Finding{
		Kind: providers.FindOrphan, Address: a, Object: o.Name,
		Evidence: []string{describe(system, o) + " bears our mark; it is in neither the spec nor the state"},
		Action:   "left alone; put its block back to manage it again",
		Next:     providers.SayVmctl("to remove it: ", "cleanup", a.String()),
	}}
	_, inSpec := d.config.Resource(a)
	_, recorded := d.state.Records[a]
	if found.taken = inSpec || recorded; found.taken {
		found.finding.Evidence = append(found.finding.Evidence, fmt.Sprintf("the object of %s is another one", a))
		found.finding.Action, found.finding.Next = "left alone", providers.Say("delete it with the system's own tool, if nobody needs it")
	}
	if !found.here {
		found.finding.Evidence = append(found.finding.Evidence, "another data directory made it: it may be in use from there")
	}
	d.orphaned = append(d.orphaned, found)
	d.find(found.finding)
}

// madeHere reports whether the ID of an object is one that this data directory gives to an object of its address. A later
// replacement has a later number, and each one a later generation.
func (d *differ) madeHere(o *providers.Object) bool {
	for n := range int(min(o.Owner.Generation, maxReplaced)) + 1 {
		if ObjectID(d.options.Project, o.Owner.Address, n) == o.ID {
			return true
		}
	}
	return false
}

// maxReplaced is the number of IDs that are compared at most: an object that was replaced more often counts as another data
// directory's, and a clean-up has to be told its address.
const maxReplaced = 1000

// LeaksOf lists the leaks among the differences that Diff found on the whole spec and a world.
func LeaksOf(d Delta, w *World) Leaks {
	var l Leaks
	for _, system := range w.Systems() {
		why := system.unread()
		for _, kind := range slices.Sorted(maps.Keys(system.Inventory.Partial)) {
			why = cmp.Or(why, system.Inventory.Partial[kind])
		}
		if why != nil && system.sleep == "" {
			l.Unread = append(l.Unread, Leak{System: system, Finding: providers.Finding{Kind: providers.FindUnknown, Object: system.String(), Evidence: []string{why.Error()}, Next: why.Next}})
		}
	}
	for _, o := range d.orphans {
		l.All = append(l.All, Leak{Finding: o.finding, Goes: o.here && !o.taken, Orphan: !o.taken})
	}
	for _, f := range d.Findings {
		switch f.Kind { //nolint:exhaustive // the others are about what the spec or the state accounts for
		case providers.FindPartial, providers.FindLeftover, providers.FindInterrupted:
			if f.Next == nil {
				f.Next = providers.Vmctl("apply")
			}
			l.All = append(l.All, Leak{Finding: f})
		case providers.FindStaleLock:
			f.Next = providers.Vmctl("apply")
			if natures[f.Address.Kind].isDisk {
				f.Next = providers.Vmctl("disk", "unlock", f.Address.String())
			}
			l.All = append(l.All, Leak{Finding: f})
		case providers.FindUnknown:
			l.Unread = append(l.Unread, Leak{Finding: f})
		default:
		}
	}
	for i := range d.Changes {
		if leak, is := d.Changes[i].leak(); is {
			l.All = append(l.All, leak)
		}
	}
	slices.SortStableFunc(l.All, func(a, b Leak) int { return compareFindings(a.Finding, b.Finding) })
	return l
}

// leak returns what leaked by the change of an address: an object without its record, or a record without its object.
func (c *Change) leak() (Leak, bool) {
	f := providers.Finding{Address: c.Address, Object: c.Name}
	switch {
	case c.Blocked != nil && c.Blocked.Cause == CauseUnknown, natures[c.Kind].isFound, outlives(c.Kind): // what is kept of a job is no leak
	case c.Record == nil && c.Object != nil && !c.importing && c.Want != nil:
		f.Kind, f.Evidence, f.Next = providers.FindOrphan, []string{"it is there, and its record was lost"}, providers.Vmctl("apply")
		return Leak{Finding: f}, true
	case c.Record != nil && c.Object == nil && c.Want == nil && c.Action == providers.Forget && c.ID != "":
		f.Kind, f.Evidence = providers.FindMissing, []string{"its record is there, it is gone, and no block wants it"}
		f.Next = providers.Vmctl("cleanup", c.Address.String())
		return Leak{Finding: f, Goes: true}, true
	}
	return Leak{}, false
}
