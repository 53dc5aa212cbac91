package planner

// Marking classifies the owner mark of an object, seen from one project.
type Marking string

// The markings. A copy bears our mark, written for another object. A moved object bears our mark
// with the address that it had before its record was moved. If the record of an address names it,
// it belongs to that address, else to another one.
const (
	Absent   Marking = "absent" // there is no object
	Unmarked Marking = "unmarked"
	Foreign  Marking = "foreign" // another project's
	Copied   Marking = "copy"
	Moved    Marking = "moved"
	Ours     Marking = "ours"
)

// Standing classifies an object, or an address without an object, for a project.
type Standing string

// The standings.
const (
	Managed  Standing = "managed"  // kept as the spec says
	Unwanted Standing = "unwanted" // ours, and no longer in the spec: destroyed
	Adoptee  Standing = "adopt"    // ours, and the record is lost: the record is written anew
	Orphan   Standing = "orphan"   // ours, and neither in the spec nor recorded: reported
	Stranger Standing = "foreign"  // not ours, and in the way: blocks
	Clone    Standing = "copy"     // bears our mark and is not ours: in the way if its name is
	LetGo    Standing = "forget"   // the record has nothing left to remember
	Wanted   Standing = "wanted"   // to be made
	NotOurs  Standing = "ignored"
)

type ownership struct {
	Marking  Marking
	Recorded bool // a record names this very object; for Absent: there is a record
	InSpec   bool
	Standing Standing
}

// ownershipTable decides the standing of an object. Reality wins over state and the mark over
// names (DESIGN.md, rule 1). Without a mark the record's ID proves the ownership, and without
// both nothing is ever touched (rule 5).
var ownershipTable = []ownership{
	{Absent, false, false, NotOurs},
	{Absent, false, true, Wanted},
	{Absent, true, false, LetGo},
	{Absent, true, true, Wanted},
	{Unmarked, false, false, NotOurs},
	{Unmarked, false, true, Stranger},
	{Unmarked, true, false, Unwanted},
	{Unmarked, true, true, Managed},
	{Foreign, false, false, NotOurs},
	{Foreign, false, true, Stranger},
	{Foreign, true, false, LetGo},
	{Foreign, true, true, Stranger},
	{Copied, false, false, Clone},
	{Copied, false, true, Clone},
	{Copied, true, false, LetGo},
	{Copied, true, true, Clone},
	{Moved, false, false, NotOurs},
	{Moved, false, true, Stranger},
	{Moved, true, false, Unwanted},
	{Moved, true, true, Managed},
	{Ours, false, false, Orphan},
	{Ours, false, true, Adoptee},
	{Ours, true, false, Unwanted},
	{Ours, true, true, Managed},
}
