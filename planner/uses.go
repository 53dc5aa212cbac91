package planner

import (
	"vmctl/providers"
	"vmctl/spec"
)

// uses maps each address in needs to the object found there. These addresses have been decided
// before.
func (d *differ) uses(needs []spec.Address) map[spec.Address]providers.Used {
	uses := map[spec.Address]providers.Used{}
	for _, a := range needs {
		if used, ok := d.used[a]; ok {
			uses[a] = used
		}
	}
	return uses
}

// usedAs returns the object that other resources find at the address of a change. Out of scope,
// that is the present object.
func usedAs(c Change, inScope bool) providers.Used {
	used := providers.Used{Kind: c.Kind, ID: c.ID, Name: c.Name}
	if c.Object != nil && (!inScope || c.ID == "") {
		used.ID, used.Name = c.Object.ID, c.Object.Name
	}
	if used.ID == "" && c.Record != nil {
		used.ID = providers.ID(c.Record.ID)
	}
	return used
}
