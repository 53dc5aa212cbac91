package planner

import (
	"slices"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// due returns what is due on an object that stays. A command about the run state or the keys of VMs does only what lets the user get
// at the object, and an address that goes back to its record has another block.
func (d *differ) due(o *providers.Object, a spec.Address) []providers.Due {
	switch {
	case d.options.Revert[a], d.options.Heal:
		return nil
	case d.isPower():
		return slices.DeleteFunc(slices.Clone(o.Due), func(due providers.Due) bool { return !due.Access })
	default:
		return o.Due
	}
}

// whyDue returns the reason of a change that does only what is due.
func whyDue(all []providers.Due) string {
	reasons := make([]string, 0, len(all))
	for _, due := range all {
		reasons = append(reasons, due.Reason)
	}
	return strings.Join(reasons, "; ")
}
