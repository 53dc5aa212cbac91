package planner

import (
	"fmt"
	"slices"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// mostCompared is the largest number of destroyed resources with which a new one is compared:
// with thousands that differ, no hint is worth the time.
const mostCompared = 100

// hintRenames warns about a new resource with the same attributes as one that is destroyed
// because its block is gone: the block was probably renamed.
func (d *differ) hintRenames(all []spec.Address) {
	if d.options.Destroy {
		return
	}
	ended := map[renameKey][]*Change{}
	for _, from := range all {
		if c := d.decided[from]; d.scope[from] && c.Action == providers.Destroy && c.Want == nil && c.Record != nil && !d.ends(from) {
			key := renameKey{c.Kind, c.System, c.Inside}
			ended[key] = append(ended[key], c)
		}
	}
	for _, to := range all {
		made := d.decided[to]
		if !d.scope[to] || made.Action != providers.Create || made.Want == nil || made.Record != nil {
			continue
		}
		key := renameKey{made.Kind, made.System, made.Inside}
		i := slices.IndexFunc(ended[key][:min(len(ended[key]), mostCompared)], func(c *Change) bool { return isRename(c, made) })
		if i < 0 {
			continue
		}
		from := ended[key][i].Address
		made.Warnings = append(made.Warnings, fmt.Sprintf(
			"%s, which this plan destroys, has the same attributes. If its block was renamed, write: moved { from = %s, to = %s }", from, from, to))
		ended[key] = slices.Delete(ended[key], i, i+1)
	}
}

// renameKey holds the properties that a rename does not change.
type renameKey struct {
	kind   spec.Kind
	system string
	inside spec.Address
}

// isRename reports whether the new resource has the attributes of the destroyed one, apart from
// its name and run state.
func isRename(ended, made *Change) bool {
	for _, name := range attributeNames(made.Change.Want) {
		want := made.Change.Want.GetAttr(name)
		if name == "name" || name == "running" {
			continue
		}
		was := ctyread.Attr(ended.Record.Values, name)
		if !want.IsWhollyKnown() || !same(was, want) {
			return false
		}
	}
	return true
}
