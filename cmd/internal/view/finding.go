package view

import (
	"slices"
	"strings"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

func (p *page) findings(all []providers.Finding) {
	if len(all) == 0 {
		return
	}
	p.heading("Findings")
	for _, f := range all {
		p.finding(f)
	}
}

func (p *page) finding(f providers.Finding) {
	style := yellow
	if f.Kind == providers.FindUnknown {
		style = red
	}
	p.put(2, 6, in(style, strings.ReplaceAll(string(f.Kind), "_", " ")), txt("  "+subject(f)))
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
		return !slices.ContainsFunc(f.Evidence, func(who string) bool { return !strings.Contains(b.Reason, who) })
	}
	return f.Kind == providers.FindUnknown && b.Kind == planner.Unknown
}

// subject names the address, object and claim of a finding.
func subject(f providers.Finding) string {
	var parts []string
	if f.Address != (spec.Address{}) {
		parts = append(parts, f.Address.String())
	}
	if f.Object != "" {
		parts = append(parts, "object "+f.Object)
	}
	if f.Claim != (providers.Claim{}) {
		parts = append(parts, f.Claim.String())
	}
	return strings.Join(parts, ", ")
}
