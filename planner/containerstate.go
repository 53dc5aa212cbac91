package planner

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// stateRunning and stateCreated are values of the attribute state of a container. A container that does not run is created.
const (
	stateRunning = "running"
	stateCreated = "created"
)

// stateEdit returns the edit of a container for which a command asks for another state, ignore_changes or not.
func (d *differ) stateEdit(c *Change, before cty.Value, attrs map[string]providers.Attribute) []providers.Edit {
	state, asked := d.options.States[c.Address]
	if !asked {
		return nil
	}
	c.Change.Want = with(c.Change.Want, "state", cty.StringVal(state))
	was := cty.EmptyObjectVal
	if shown := ctyread.Attr(before, "state"); shown != cty.NilVal {
		was = with(was, "state", shown)
	}
	return edits(was, with(cty.EmptyObjectVal, "state", cty.StringVal(state)), attrs, false)
}

// containerIsUp reports whether an object is a container that runs or is paused.
func containerIsUp(o *providers.Object) bool {
	state := ctyread.Text(o.Attrs, "state")
	return o.Kind == spec.Container && state != "" && state != stateCreated
}
