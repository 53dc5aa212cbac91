package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"vmctl/providers"
)

// claims orders who frees a claim before who takes it, or one that overlaps it
// (rule 11 d). A claim that somebody outside of this plan holds blocks its taker.
func (o *orderer) claims() error {
	takers, freers := map[claimGroup][]claimant{}, map[claimGroup][]claimant{}
	for _, n := range o.nodes {
		for _, c := range n.step.Takes {
			group := claimGroup{o.plan.Changes[n.step.Change].System, c.Group()}
			if err := alone(n, c, takers[group]); err != nil {
				return err
			}
			takers[group] = append(takers[group], claimant{c, n})
		}
		for _, c := range n.step.Frees {
			group := claimGroup{o.plan.Changes[n.step.Change].System, c.Group()}
			freers[group] = append(freers[group], claimant{c, n})
		}
	}
	blocked := map[int]bool{}
	for _, group := range slices.SortedFunc(maps.Keys(takers), compareGroups) {
		for _, taker := range takers[group] {
			change := &o.plan.Changes[taker.node.step.Change]
			for _, freer := range freers[group] {
				if freer.claim.Overlaps(taker.claim) {
					taker.node.wait(freer.node)
				}
			}
			if holder, held := o.holder(group, taker, freers[group]); holder != nil && change.Blocked == nil {
				change.Blocked = &Block{
					Kind:   Blocked,
					Reason: fmt.Sprintf("%s is held by %s", taker.claim, describe(o.world.System(group.system), holder)),
					Next:   []string{"choose another in the block of " + change.Address.String() + ", or free it first"},
				}
				if held != taker.claim {
					change.Blocked.Reason += " as " + held.Key
				}
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

// alone fails if somebody else takes what n takes.
func alone(n *node, c providers.Claim, takers []claimant) error {
	for _, other := range takers {
		switch {
		case other.node.step.Address == n.step.Address || !other.claim.Overlaps(c):
		case other.claim == c:
			return &OrderError{fmt.Sprintf("%s and %s both want %s: change one of them", other.node.step.Address, n.step.Address, c)}
		default:
			return &OrderError{fmt.Sprintf("%s wants %s and %s wants %s, and only one can have both: change one of them",
				other.node.step.Address, other.claim, n.step.Address, c)}
		}
	}
	return nil
}

type claimant struct {
	claim providers.Claim
	node  *node
}

// claimGroup is of claims that can overlap, on one system.
type claimGroup struct {
	system string
	claim  providers.Claim
}

func compareGroups(a, b claimGroup) int {
	return cmp.Or(cmp.Compare(a.system, b.system), cmp.Compare(a.claim.Kind, b.claim.Kind), cmp.Compare(a.claim.Key, b.claim.Key))
}

// holder is the object, other than the taker's own, that holds now what it
// takes, and that no step frees; and the claim by which it does.
func (o *orderer) holder(group claimGroup, taker claimant, freers []claimant) (*providers.Object, providers.Claim) {
	change := &o.plan.Changes[taker.node.step.Change]
	objects := o.world.System(group.system).Inventory.Objects
	for i := range objects {
		obj := &objects[i]
		if obj.ID == change.ID || change.Object != nil && obj.ID == change.Object.ID {
			continue
		}
		for _, held := range obj.Holds {
			if !held.Overlaps(taker.claim) || slices.ContainsFunc(freers, func(f claimant) bool { return f.claim == held }) {
				continue
			}
			return obj, held
		}
	}
	return nil, providers.Claim{}
}
