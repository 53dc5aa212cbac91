package planner

import (
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// due returns what is due on an object that stays. A command about the run state or the keys of VMs does nothing of it, and
// an address that goes back to its record has another block.
func (d *differ) due(o *providers.Object, a spec.Address) []providers.Due {
	if d.isPower() || d.options.Revert[a] {
		return nil
	}
	return o.Due
}

// whyDue returns the reason of a change that does only what is due.
func whyDue(all []providers.Due) string {
	reasons := make([]string, 0, len(all))
	for _, due := range all {
		reasons = append(reasons, due.Reason)
	}
	return strings.Join(reasons, "; ")
}
