package planner

import (
	"vmctl/providers"
)

// Stand looks an object up in the ownership table. recorded says that a record
// names this very object; for Absent, that there is a record.
func Stand(m Marking, recorded, inSpec bool) Standing {
	for _, row := range ownershipTable {
		if row.Marking == m && row.Recorded == recorded && row.InSpec == inSpec {
			return row.Standing
		}
	}
	panic("ownership table has no row for " + string(m))
}

// MarkingOf returns the marking of an object, seen from a project.
func MarkingOf(o *providers.Object, p providers.Project) Marking {
	switch {
	case o == nil:
		return Absent
	case o.Owner == nil:
		return Unmarked
	case o.Owner.ID != p.Lineage():
		return Foreign
	case o.Owner.Of != o.ID:
		return Copied
	default:
		return Ours
	}
}
