package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"vmctl/providers"
)

// handover is a claim that one change takes and another one frees.
type handover struct {
	from  int // the change that frees it
	claim providers.Claim
}

// exchanges fails where changes would take claims from each other: none can go
// first.
func (o *orderer) exchanges(h handovers) error {
	takes := map[int][]handover{}
	for _, group := range slices.SortedFunc(maps.Keys(h.takers), compareGroups) {
		for _, taker := range h.takers[group] {
			for _, freer := range h.freers[group] {
				from, to := freer.node.step.Change, taker.node.step.Change
				if from != to && !taker.end && freer.claim.Overlaps(taker.claim) {
					takes[to] = append(takes[to], handover{from, taker.claim})
				}
			}
		}
	}
	done := map[int]bool{}
	for i := range o.plan.Changes {
		if round := circle(i, takes, nil, done); round != nil {
			return &OrderError{o.exchangeReason(round, takes)}
		}
	}
	return nil
}

// circle is the changes that wait for each other, from one on; nil: none do.
func circle(change int, takes map[int][]handover, path []int, done map[int]bool) []int {
	if at := slices.Index(path, change); at >= 0 {
		return path[at:]
	}
	if done[change] {
		return nil
	}
	path = append(path, change)
	for _, h := range takes[change] {
		if round := circle(h.from, takes, path, done); round != nil {
			return slices.Clone(round)
		}
	}
	done[change] = true
	return nil
}

// exchangeReason says who wants what of whom, and the way out.
func (o *orderer) exchangeReason(round []int, takes map[int][]handover) string {
	slices.SortStableFunc(round, func(a, b int) int { return o.plan.Changes[a].Address.Compare(o.plan.Changes[b].Address) })
	var wants []string
	for _, change := range round {
		for _, h := range takes[change] {
			if slices.Contains(round, h.from) {
				wants = append(wants, fmt.Sprintf("%s wants %s, which %s has", o.plan.Changes[change].Address, h.claim, o.plan.Changes[h.from].Address))
				break
			}
		}
	}
	return fmt.Sprintf("%s: none of them can go first. Give %s another one for now and apply that; then the one that it is to have",
		strings.Join(wants, ", and "), o.plan.Changes[round[0]].Address)
}
