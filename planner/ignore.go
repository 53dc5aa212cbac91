package planner

import (
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
)

// ignored lists the attributes whose edits and drift are left alone, by lifecycle.ignore_changes
// of a policy. There, "all" means every attribute of v but running.
func ignored(policy, v cty.Value) []string {
	list := ctyread.Attr(ctyread.Attr(policy, "lifecycle"), "ignore_changes")
	if list == cty.NilVal || list.IsNull() || !list.IsWhollyKnown() {
		return nil
	}
	var paths []string
	for _, part := range list.AsValueSlice() {
		if path := part.AsString(); path != "all" {
			paths = append(paths, path)
			continue
		}
		for _, name := range attributeNames(v) {
			if name != "running" {
				paths = append(paths, name)
			}
		}
	}
	return paths
}

// ignore gives the ignored attributes of Want the values that they have in before. What is sensitive in Want stays so:
// the record gets its digest.
func (c *Change) ignore(before cty.Value) {
	c.Change.Want = keeping(c.Change.Want, before, ignored(c.Policy, c.Change.Want))
}

// ignores reports whether changes of an attribute are ignored.
func (c *Change) ignores(path string) bool {
	for _, p := range ignored(c.Policy, c.Change.Want) {
		if path == p || strings.HasPrefix(path, p+".") {
			return true
		}
	}
	return false
}

// keeping returns v with the values of other at paths, where both have one.
func keeping(v, other cty.Value, paths []string) cty.Value {
	for _, path := range paths {
		v = keepingAt(v, other, path)
	}
	return v
}

func keepingAt(v, other cty.Value, path string) cty.Value {
	name, rest, deeper := strings.Cut(path, ".")
	mine, theirs := ctyread.Attr(v, name), ctyread.Attr(other, name)
	switch {
	case mine == cty.NilVal || theirs == cty.NilVal:
		return v
	case deeper:
		return with(v, name, keepingAt(mine, theirs, rest))
	default:
		return with(v, name, markedLike(theirs, mine))
	}
}
