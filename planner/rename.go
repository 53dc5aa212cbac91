package planner

import (
	"fmt"

	"vmctl/providers"
	"vmctl/spec"
)

// hintRenames warns where a resource is made that is just like one that is destroyed
// because its block went: the block was probably renamed.
func (d *differ) hintRenames(all []spec.Address) {
	if d.options.Destroy {
		return
	}
	hinted := map[spec.Address]bool{}
	for _, to := range all {
		made := d.decided[to]
		if !d.scope[to] || made.Action != providers.Create || made.Want == nil || made.Record != nil {
			continue
		}
		for _, from := range all {
			if ended := d.decided[from]; !d.scope[from] || hinted[from] || !isRename(ended, made) || d.ends(from) {
				continue
			}
			hinted[from] = true
			made.Warnings = append(made.Warnings, fmt.Sprintf(
				"%s, which is destroyed, is the same but for its name. If its block was renamed, write: moved { from = %s, to = %s }", from, from, to))
			break
		}
	}
}

// isRename reports whether what is made would be what is destroyed, but for its name.
func isRename(ended, made *Change) bool {
	if ended.Action != providers.Destroy || ended.Want != nil || ended.Record == nil ||
		ended.Kind != made.Kind || ended.System != made.System || ended.Inside != made.Inside {
		return false
	}
	for _, name := range attributeNames(made.Change.Want) {
		want := made.Change.Want.GetAttr(name)
		if name == "name" || name == "running" {
			continue
		}
		was := attribute(ended.Record.Values, name)
		if !want.IsWhollyKnown() || !same(was, want) {
			return false
		}
	}
	return true
}
