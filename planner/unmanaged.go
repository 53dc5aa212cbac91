package planner

import (
	"fmt"

	"vmctl/internal/ctyread"
	"vmctl/providers"
)

// unmanaged reports an object that is not ours, if the block of what it is in says so. What is part of the system, and cannot be
// removed, is no finding.
func (d *differ) unmanaged(system *System, o *providers.Object) {
	around := d.decided[system.Inside]
	if around == nil || o.Protected != "" || ctyread.Text(ctyread.Attr(around.Policy, "unmanaged"), string(o.Kind)+"s") != "report" {
		return
	}
	whose := "bears no mark of vmctl"
	if o.Owner != nil {
		whose = fmt.Sprintf("is %s of the project %q", o.Owner.Address, o.Owner.Project)
	}
	f := providers.Finding{
		Kind: providers.FindUnmanaged, Object: o.Name,
		Evidence: []string{fmt.Sprintf("%s %q (%s) is in %s, no block describes it, and it %s", o.Kind, o.Name, o.ID, system.Inside, whose)},
		Action:   "left alone",
	}
	if o.Owner == nil {
		f.Next = providers.SayVmctl("to remove it: ", "cleanup", fmt.Sprintf("%s/%s/%s", system.Inside, o.Kind, o.Name))
	}
	d.find(f)
}
