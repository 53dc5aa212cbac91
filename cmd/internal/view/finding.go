package view

import (
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

// unsaid lists the findings of a plan without those that say only what a change
// is blocked for: that it could not be read.
func unsaid(plan *planner.Plan) []providers.Finding {
	said := map[spec.Address]bool{}
	for _, c := range plan.Changes {
		said[c.Address] = c.Blocked != nil && c.Blocked.Kind == planner.Unknown
	}
	var all []providers.Finding
	for _, f := range plan.Findings {
		if f.Kind != providers.FindUnknown || !said[f.Address] {
			all = append(all, f)
		}
	}
	return all
}

// subject names what a finding is about.
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
