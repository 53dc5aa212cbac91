package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

// claims orders who frees a claim before who takes it, or one that overlaps it
// (rule 11 d). A claim that somebody outside of this plan holds blocks its taker.
// The end of a disk takes it.
func (o *orderer) claims() error {
	h := o.handovers()
	if h.twice != nil {
		return h.twice
	}
	if err := o.exchanges(h); err != nil {
		return err
	}
	blocked := map[int]bool{}
	for _, group := range slices.SortedFunc(maps.Keys(h.takers), compareGroups) {
		for _, taker := range h.takers[group] {
			change := &o.plan.Changes[taker.node.step.Change]
			for _, freer := range h.freers[group] {
				if freer.claim.Overlaps(taker.claim) && !o.takesNext(freer, taker) {
					taker.node.wait(freer.node)
				}
			}
			if holder, held := h.holder(group, taker, change); holder != nil && change.Blocked == nil {
				change.Blocked = o.heldBlock(taker, change, holder, held)
				blocked[taker.node.step.Change] = true
			}
		}
	}
	o.nodes = slices.DeleteFunc(o.nodes, func(n *node) bool { return blocked[n.step.Change] })
	for _, n := range o.nodes {
		maps.DeleteFunc(n.after, func(m *node, _ bool) bool { return blocked[m.step.Change] })
	}
	return nil
}

// handovers are the claims that steps take and free, and those that are held now.
type handovers struct {
	takers, freers map[claimGroup][]claimant
	holders        map[claimGroup][]holding
	twice          error // two want one claim; nil: none do
}

type claimant struct {
	claim providers.Claim
	node  *node
	end   bool // of a disk: nobody has the claim afterwards
}

type holding struct {
	claim  providers.Claim
	object *providers.Object
}

// claimGroup is of claims that can overlap, on one system.
type claimGroup struct {
	system string
	claim  providers.Claim
}

func compareGroups(a, b claimGroup) int {
	return cmp.Or(cmp.Compare(a.system, b.system), cmp.Compare(a.claim.Kind, b.claim.Kind), cmp.Compare(a.claim.Key, b.claim.Key))
}

func (o *orderer) handovers() handovers {
	h := handovers{takers: map[claimGroup][]claimant{}, freers: map[claimGroup][]claimant{}, holders: map[claimGroup][]holding{}}
	for _, n := range o.nodes {
		system := o.plan.Changes[n.step.Change].System
		for _, c := range n.step.Takes {
			h.take(claimGroup{system, c.Group()}, claimant{claim: c, node: n})
		}
		if n.step.Address.Kind == spec.Disk && n.step.Phase == providers.PhaseRemove {
			c := providers.Claim{Kind: providers.ClaimDisk, Key: string(n.step.Object)}
			h.take(claimGroup{system, c}, claimant{claim: c, node: n, end: true})
		}
		for _, c := range n.step.Frees {
			group := claimGroup{system, c.Group()}
			h.freers[group] = append(h.freers[group], claimant{claim: c, node: n})
		}
	}
	for _, system := range o.world.Systems() {
		for i := range system.Inventory.Objects {
			object := &system.Inventory.Objects[i]
			for _, c := range object.Holds {
				group := claimGroup{system.Key, c.Group()}
				h.holders[group] = append(h.holders[group], holding{c, object})
			}
		}
	}
	return h
}

// take notes who takes a claim, and if two do.
func (h *handovers) take(group claimGroup, c claimant) {
	if h.twice == nil {
		h.twice = alone(c, h.takers[group])
	}
	h.takers[group] = append(h.takers[group], c)
}

// alone fails if somebody else takes what c takes.
func alone(c claimant, takers []claimant) error {
	for _, other := range takers {
		switch {
		case c.end || other.end, other.node.step.Address == c.node.step.Address, !other.claim.Overlaps(c.claim):
		case other.claim == c.claim:
			return &OrderError{fmt.Sprintf("%s and %s both want %s: change one of them", other.node.step.Address, c.node.step.Address, c.claim)}
		default:
			return &OrderError{fmt.Sprintf("%s wants %s and %s wants %s, and only one can have both: change one of them",
				other.node.step.Address, other.claim, c.node.step.Address, c.claim)}
		}
	}
	return nil
}

// takesNext reports whether who frees a disk waits for the one that comes in its
// place, and so cannot go before the end of this one.
func (o *orderer) takesNext(freer, end claimant) bool {
	disk := &o.plan.Changes[end.node.step.Change]
	return end.end && disk.Action == providers.ReplaceIt && rises(freer.node) &&
		slices.Contains(o.plan.Changes[freer.node.step.Change].Needs, disk.Address)
}

// holder is the object, other than the taker's own, that holds now what it takes,
// and that no step frees; and the claim by which it does.
func (h *handovers) holder(group claimGroup, taker claimant, change *Change) (*providers.Object, providers.Claim) {
	for _, held := range h.holders[group] {
		if held.object.ID == change.ID || change.Object != nil && held.object.ID == change.Object.ID {
			continue
		}
		freed := slices.ContainsFunc(h.freers[group], func(f claimant) bool { return f.claim == held.claim })
		if held.claim.Overlaps(taker.claim) && !freed {
			return held.object, held.claim
		}
	}
	return nil, providers.Claim{}
}

// heldBlock says who keeps a change from what it takes.
func (o *orderer) heldBlock(taker claimant, change *Change, holder *providers.Object, held providers.Claim) *Block {
	system := o.world.System(change.System)
	if taker.end {
		return &Block{
			Kind: Blocked, Reason: fmt.Sprintf("%s uses it", describe(system, holder)),
			Next: []string{"take it off that one first, with vmctl or with the system's own tool"},
		}
	}
	b := &Block{
		Kind:   Blocked,
		Reason: fmt.Sprintf("%s is held by %s", o.called(taker.claim, change), describe(system, holder)),
		Next:   []string{"choose another in the block of " + change.Address.String() + ", or free it first"},
	}
	if held != taker.claim {
		b.Reason += " as " + held.Key
	}
	return b
}

// called is a claim for people: that on a disk by the disk's address.
func (o *orderer) called(c providers.Claim, change *Change) string {
	for _, a := range change.Needs {
		if c.Kind == providers.ClaimDisk && change.Uses[a].ID == providers.ID(c.Key) {
			return a.String()
		}
	}
	return c.String()
}
