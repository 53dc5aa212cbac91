package planner

// Cause names the reason for which a change is blocked.
type Cause string

// The causes. Causes describes each one.
const (
	CauseForeign    Cause = "foreign_holder"
	CauseOrphan     Cause = "orphan_holder"
	CauseExcluded   Cause = "excluded_holder"
	CauseHeld       Cause = "blocked_holder"
	CauseKept       Cause = "kept_claim"
	CauseRetained   Cause = "in_use"
	CauseTwoTakers  Cause = "two_takers"
	CauseDependency Cause = "blocked_dependency"
	CauseInside     Cause = "kept_inside"
	CauseCeiling    Cause = "ceiling"
	CauseProtected  Cause = "prevent_destroy"
	CauseBusy       Cause = "busy"
	CauseDirty      Cause = "dirty"
	CauseRollout    Cause = "rollout"
	CauseRefused    Cause = "refused_edit"
	CauseMistake    Cause = "mistake"
	CauseProvider   Cause = "provider"

	CausePrecondition  Cause = "precondition"
	CausePostcondition Cause = "postcondition"
	CauseCapacity      Cause = "capacity"
	CauseAddress       Cause = "no_address"

	CauseMissing   Cause = "missing_means"
	CauseBehind    Cause = "state_behind"
	CauseImport    Cause = "import"
	CauseUnhealthy Cause = "unhealthy_orphan"
	CauseOff       Cause = "parent_off"
	CauseUnmarked  Cause = "unmarked"
	CauseDeferred  Cause = "deferred_holder"
	CauseUnknown   Cause = "unknown"
)

// CauseRow is a cause with its meaning.
type CauseRow struct {
	Cause   Cause
	Meaning string
}

// Causes lists every cause for which a change can be blocked. A change that has none
// of them is carried out: there is always an order.
func Causes() []CauseRow { return causeTable }

var causeTable = []CauseRow{
	{CauseForeign, "an object that vmctl does not manage holds a name, disk or port that the change needs"},
	{CauseOrphan, "an object with this project's mark, which is in neither the spec nor the state, holds what the change needs"},
	{CauseExcluded, "a resource that --target or --exclude leaves out holds what the change needs"},
	{CauseHeld, "a resource whose own change is blocked holds what the change needs"},
	{CauseKept, "another resource of the spec keeps what the change needs"},
	{CauseRetained, "an object that vmctl does not manage uses what is to be destroyed: that stays, and the rest is carried out"},
	{CauseTwoTakers, "two resources need the same name, disk, port or address"},
	{CauseDependency, "the change depends on a resource whose own change is blocked"},
	{CauseInside, "something inside of the VM is to be kept, and would go with it"},
	{CauseCeiling, "lifecycle.on_change allows less than the edit needs"},
	{CauseProtected, "lifecycle.prevent_destroy forbids destroying or replacing it"},
	{CauseBusy, "somebody is at work in the VM that would be taken down"},
	{CauseDirty, "it holds work that exists nowhere else and would be lost"},
	{CauseRollout, "the rollout that the block writes down cannot be kept: its instances exchange what they hold"},
	{CauseRefused, "the system cannot make the edit at all, such as shrinking a disk"},
	{CauseMistake, "the block has a mistake that shows only with the values of other objects"},
	{CausePrecondition, "a precondition of the block is false, or is known only once other changes are made while this one would take its object down before"},
	{CausePostcondition, "a postcondition of the block is false, or would be after the change"},
	{CauseCapacity, "a VM that runs for the first time or grows would have more processors than its host (two are always allowed), or the VMs of the host more memory than it has"},
	{CauseAddress, "no address of a network is free, the network does not have the one that the block names, or no prefix for the network is free"},
	{CauseProvider, "the provider cannot make the change as the object is now"},
	{CauseMissing, "the host, the spec's folder or the network lacks what the change needs"},
	{CauseBehind, "the state is older than the object's mark, so nothing is deleted on its word"},
	{CauseImport, "the object cannot be imported as the spec has it"},
	{CauseUnhealthy, "an orphan that orphan.policy adopts does not work"},
	{CauseOff, "the VM is off: objects inside of it cannot be made, removed or let go of"},
	{CauseUnmarked, "somebody took the owner mark off the object, so nothing is deleted on the record's word"},
	{CauseDeferred, "a resource that waits until the VM is up holds what the VM needs to come up"},
	{CauseUnknown, "what the change rests on could not be read"},
}
