package planner

import (
	"vmctl/providers"
	"vmctl/spec"
)

// uses is what those that an address needs are to it. They have been decided
// about before.
func (d *differ) uses(needs []spec.Address) map[spec.Address]providers.Used {
	uses := map[spec.Address]providers.Used{}
	for _, a := range needs {
		if used, ok := d.used[a]; ok {
			uses[a] = used
		}
	}
	return uses
}

// usedAs is what others that use the address of a change will find there. What is
// out of scope stays the object that it is.
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
