package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"vmctl/providers"
)

// handover is a claim that one step takes and another one frees.
type handover struct {
	from  *node // the step that frees it
	claim providers.Claim
}

// exchanges fails where changes would take claims from each other, and none can go
// first. One that lets go by a step of its own before it takes can.
func (o *orderer) exchanges(h handovers) error {
	takes := map[*node][]handover{}
	for _, group := range slices.SortedFunc(maps.Keys(h.takers), compareGroups) {
		for _, taker := range h.takers[group] {
			for _, freer := range h.freers[group] {
				if freer.node.step.Change != taker.node.step.Change && !taker.end && freer.claim.Overlaps(taker.claim) {
					takes[taker.node] = append(takes[taker.node], handover{freer.node, taker.claim})
				}
			}
		}
	}
	done := map[*node]bool{}
	for _, n := range o.nodes {
		if round := circle(n, takes, nil, done); round != nil {
			return &OrderError{o.exchangeReason(round, takes)}
		}
	}
	return nil
}

// circle is the steps that wait for each other, from one on; nil: none do.
func circle(n *node, takes map[*node][]handover, path []*node, done map[*node]bool) []*node {
	if at := slices.Index(path, n); at >= 0 {
		return path[at:]
	}
	if done[n] {
		return nil
	}
	path = append(path, n)
	waitsFor := slices.Collect(maps.Keys(n.after))
	slices.SortFunc(waitsFor, func(a, b *node) int { return a.index - b.index })
	waitsFor = slices.DeleteFunc(waitsFor, func(m *node) bool { return m.step.Change != n.step.Change })
	for _, h := range takes[n] {
		waitsFor = append(waitsFor, h.from)
	}
	for _, m := range waitsFor {
		if round := circle(m, takes, path, done); round != nil {
			return slices.Clone(round)
		}
	}
	done[n] = true
	return nil
}

// exchangeReason says who wants what of whom, and the way out.
func (o *orderer) exchangeReason(round []*node, takes map[*node][]handover) string {
	slices.SortStableFunc(round, func(a, b *node) int { return a.step.Address.Compare(b.step.Address) })
	var wants []string
	for _, n := range round {
		for _, h := range takes[n] {
			if slices.Contains(round, h.from) {
				wants = append(wants, fmt.Sprintf("%s wants %s, which %s has", n.step.Address, h.claim, h.from.step.Address))
				break
			}
		}
	}
	return fmt.Sprintf("%s: none of them can go first. Give %s another one for now and apply that; then the one that it is to have",
		strings.Join(wants, ", and "), round[0].step.Address)
}
