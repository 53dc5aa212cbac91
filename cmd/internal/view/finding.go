package view

import (
	"slices"
	"strings"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// FindingEntry is a finding as JSON.
type FindingEntry struct {
	Kind     string   `json:"kind"`
	Address  string   `json:"address"`
	Object   string   `json:"object"`
	Claim    string   `json:"claim"`
	Evidence []string `json:"evidence"`
	Action   string   `json:"action"` // what is done about it, and what to type
}

// FindingEntries returns findings for a run with own flags, never null.
func FindingEntries(all []providers.Finding, own OwnFlags) []FindingEntry {
	entries := []FindingEntry{}
	for _, f := range all {
		e := FindingEntry{Kind: string(f.Kind), Address: f.Address.String(), Object: f.Object, Evidence: list(f.Evidence)}
		if f.Claim != (providers.Claim{}) {
			e.Claim = f.Claim.String()
		}
		actions := own.Advice(f.Next)
		if f.Action != "" {
			actions = slices.Insert(actions, 0, f.Action)
		}
		e.Action = strings.Join(actions, "; ")
		entries = append(entries, e)
	}
	return entries
}

func (p *page) findings(all []FindingEntry) {
	if len(all) == 0 {
		return
	}
	p.heading("Findings")
	for _, f := range all {
		p.finding(f)
	}
}

func (p *page) finding(f FindingEntry) {
	style := yellow
	if f.Kind == string(providers.FindUnknown) {
		style = red
	}
	p.put(2, 6, in(style, strings.ReplaceAll(f.Kind, "_", " ")), txt("  "+f.subject()))
	for _, line := range f.Evidence {
		p.put(6, 8, txt(line))
	}
	if f.Action != "" {
		p.put(6, 8, txt(p.symbol("→", "->")+" "+f.Action))
	}
}

// unsaid lists the findings of a plan, without those that only repeat why a change is
// blocked: that it could not be read, or that somebody is inside.
func unsaid(plan *planner.Plan) []providers.Finding {
	blocks := map[spec.Address]*planner.Block{}
	for _, c := range plan.Changes {
		blocks[c.Address] = c.Blocked
	}
	var all []providers.Finding
	for _, f := range plan.Findings {
		if b := blocks[f.Address]; b == nil || !says(b, f) {
			all = append(all, f)
		}
	}
	return all
}

// says reports whether a block's reason covers a finding.
func says(b *planner.Block, f providers.Finding) bool {
	if f.Kind == providers.FindBusy {
		return !slices.ContainsFunc(f.Evidence, func(who string) bool { return !strings.Contains(b.Error(), who) })
	}
	return f.Kind == providers.FindUnknown && b.Cause == planner.CauseUnknown
}

// subject names the address, object and claim of a finding.
func (f FindingEntry) subject() string {
	var parts []string
	if f.Address != "" {
		parts = append(parts, f.Address)
	}
	if f.Object != "" {
		parts = append(parts, "object "+f.Object)
	}
	if f.Claim != "" {
		parts = append(parts, f.Claim)
	}
	return strings.Join(parts, ", ")
}
