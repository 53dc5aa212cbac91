package view

import (
	"slices"
	"strings"

	"vmctl/planner"
	"vmctl/providers"
)

// risk is one line of the first screen. Changes with the same words share a line.
type risk struct {
	word    string
	style   style
	says    string // the action, or the problem of a blocked change
	reason  string // of the action, if the lines of the change do not say it; it tells unlike actions apart
	next    []string
	objects []string
}

// risks writes the changes that the reader must not overlook: blocked, refused and unknown
// ones, data loss and downtime.
func (p *page) risks(plan *planner.Plan, own OwnFlags) {
	all := risksOf(plan, own)
	if len(all) == 0 {
		return
	}
	p.blank()
	for _, r := range all {
		says := r.says
		if r.reason != "" && slices.ContainsFunc(all, func(other risk) bool { return other.says == r.says && other.reason != r.reason }) {
			says += ", " + r.reason
		}
		p.put(2, 6, in(r.style, "! "+r.word), txt(" "+shortList(r.objects)+": "+says))
		for _, next := range r.next {
			p.put(6, 8, txt(next))
		}
	}
}

func risksOf(plan *planner.Plan, own OwnFlags) []risk {
	var blocked, lost, down []risk
	worst := worstRisks(plan)
	for i, c := range plan.Changes {
		if b := c.Blocked; b != nil {
			style := red
			if b.Skipped {
				style = yellow
			}
			blocked = gather(blocked, risk{word: string(b.Kind()), style: style, says: b.Error(), next: own.Advice(b.Next)}, c)
			continue
		}
		switch worst[i] {
		case providers.DataLoss:
			lost = gather(lost, risk{word: "data loss", style: red, says: string(c.Action), reason: untold(c)}, c)
		case providers.Downtime:
			down = gather(down, risk{word: "downtime", style: yellow, says: string(c.Action), reason: untold(c)}, c)
		case providers.NoRisk:
		default:
		}
	}
	return append(append(blocked, lost...), down...)
}

// untold returns the reason of a change, "" if its lines say it.
func untold(c planner.Change) string {
	if c.Altered {
		return ""
	}
	return c.Reason
}

// gather adds c to the line with the same words and next commands, or adds a line.
func gather(all []risk, r risk, c planner.Change) []risk {
	for i := range all {
		if all[i].word == r.word && all[i].says == r.says && all[i].reason == r.reason && strings.Join(all[i].next, "\n") == strings.Join(r.next, "\n") {
			all[i].objects = append(all[i].objects, c.Address.String())
			return all
		}
	}
	r.objects = []string{c.Address.String()}
	return append(all, r)
}

// shortList names the first of many, and counts the others.
func shortList(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + " and " + plural(len(names)-most, "other")
}
