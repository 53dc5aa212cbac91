package planner

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
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
	attr := natures[c.Kind].stateAttr
	c.Change.Want = with(c.Change.Want, attr, cty.StringVal(state))
	was := cty.EmptyObjectVal
	if shown := ctyread.Attr(before, attr); shown != cty.NilVal {
		was = with(was, attr, shown)
	}
	return edits(was, with(cty.EmptyObjectVal, attr, cty.StringVal(state)), attrs, false)
}

// spend has an object that never runs again replaced where its state is to be another one.
func (c *Change) spend() {
	if c.Object.Spent == "" {
		return
	}
	for i := range c.Edits {
		if c.Edits[i].Path == natures[c.Kind].stateAttr {
			c.Edits[i].Verdict = providers.Verdict{Applies: providers.Replace, Reason: c.Object.Spent}
		}
	}
}

// isUpByState reports whether an object, a container, runs or is paused.
func isUpByState(o *providers.Object) bool {
	attr := natures[o.Kind].stateAttr
	if attr == "" {
		return false
	}
	state := ctyread.Text(o.Attrs, attr)
	return state != "" && state != stateCreated
}
