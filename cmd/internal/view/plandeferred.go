package view

import (
	"slices"

	"vmctl/planner"
	"vmctl/spec"
)

// deferred lists the deferred addresses, one line for each VM that they wait for.
func (p *page) deferred(all []planner.Deferred) {
	if len(all) == 0 {
		return
	}
	p.heading("Deferred")
	var vms []spec.Address
	waiting := map[spec.Address][]planner.Deferred{}
	for _, d := range all {
		if !slices.Contains(vms, d.Until) {
			vms = append(vms, d.Until)
		}
		waiting[d.Until] = append(waiting[d.Until], d)
	}
	for _, vm := range vms {
		names := shortList(Addresses(deferredAddresses(waiting[vm])))
		p.put(2, 6, in(cyan, p.symbol("…", "...")), txt(" "), in(bold, names), txt(" read after "+vm.String()+" is ready"))
	}
}

func deferredAddresses(all []planner.Deferred) []spec.Address {
	var addrs []spec.Address
	for _, d := range all {
		addrs = append(addrs, d.Address)
	}
	return addrs
}

// inapplicable shows the addresses about which nothing is read or done, by the reason.
func (p *page) inapplicable(changes []planner.Change) {
	var reasons []string
	all := map[string][]spec.Address{}
	for _, c := range changes {
		if !c.Inapplicable {
			continue
		}
		if all[c.Reason] == nil {
			reasons = append(reasons, c.Reason)
		}
		all[c.Reason] = append(all[c.Reason], c.Address)
	}
	if len(reasons) > 0 {
		p.heading("Not applicable")
	}
	for _, reason := range reasons {
		p.put(2, 6, in(dim, p.symbol("–", "-")), txt(" "), in(bold, shortList(Addresses(all[reason]))), txt(": "+reason))
	}
}
