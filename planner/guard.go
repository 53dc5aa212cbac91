package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/spec"
)

// ceilings blocks an edit that needs more than lifecycle.on_change allows. A replacement passes if
// the user allows it by flag, or if an earlier run began to delete the object: the user agreed to
// that deletion, so that going on with it needs no flag again. protect still asks for its own.
func (d *differ) ceilings(c *Change) {
	if c.Blocked != nil || (c.with != spec.Address{}) { // what is made again with the object around it has any edit
		return
	}
	allowed := c.Action == providers.ReplaceIt && (d.options.Allow.Replace[c.Address] || d.options.Replace[c.Address] || d.isHalfDeleted(c))
	for _, e := range c.alterations() {
		if e.Applies == providers.Refused {
			if c.Blocked = movesNowhere(c); e.name != "provider" {
				c.Blocked = &Block{Cause: CauseRefused, Attr: e.name, Problem: providers.Refuse(e.name+": "+e.Reason, nil)}
			}
			return
		}
		ceiling := ceilingOf(c.Kind, c.Policy, e.name)
		if e.Applies.Rank() <= ceiling.Rank() || allowed {
			continue
		}
		top, _, _ := strings.Cut(e.name, ".")
		c.Blocked = &Block{
			Cause: CauseCeiling, Attr: e.name,
			Problem: providers.Refuse(
				fmt.Sprintf("%s needs a %s (%s), and on_change allows at most %s", e.name, e.Applies, e.Reason, ceiling),
				providers.Say(fmt.Sprintf("add to the block of %s: lifecycle { on_change = { %s = %q } }", c.Address, top, e.Applies))),
		}
		if e.Applies == providers.Replace {
			c.Blocked.Next = append(c.Blocked.Next, providers.Say("or allow it once: --allow-replace="+shellword.Quote(c.Address.String()))...)
		}
		return
	}
}

// ceilingOf returns the most disruptive way in which an edit of an attribute may apply.
func ceilingOf(kind spec.Kind, policy cty.Value, path string) providers.Applies {
	ceilings := ctyread.Attr(ctyread.Attr(policy, "lifecycle"), "on_change")
	if ceilings != cty.NilVal && !ceilings.IsNull() && ceilings.IsWhollyKnown() {
		m := ceilings.AsValueMap()
		for p := path; p != ""; {
			if v, ok := m[p]; ok && !v.IsNull() {
				return providers.Applies(v.AsString())
			}
			dot := strings.LastIndexByte(p, '.')
			p = p[:max(dot, 0)]
		}
	}
	if shape, _ := spec.Shape(kind); shape.Ceiling != "" {
		return providers.Applies(shape.Ceiling)
	}
	return providers.Replace
}

// protect blocks a destruction or replacement that prevent_destroy forbids, or of an object
// without its mark. The policy of the block counts while the block exists, else that of the
// record (rule 4).
func (d *differ) protect(c *Change) {
	if c.Blocked != nil || c.Action != providers.Destroy && c.Action != providers.ReplaceIt {
		return
	}
	if c.Object != nil && c.Object.Owner == nil && c.Record != nil && !c.Record.Reserved {
		c.Blocked = unmarked(c)
		return
	}
	if c.prevented {
		c.Blocked = protected(c, fmt.Sprintf("this is a %s", c.Action))
	}
}

// protected returns the block that keeps an object with prevent_destroy from what would end it.
func protected(c *Change, what string) *Block {
	next := providers.Say("if it really should go: --allow-destroy=" + shellword.Quote(c.Address.String()))
	if c.Want == nil {
		next = append(next, providers.Say(fmt.Sprintf("or write it down: removed { from = %s, destroy = true }", c.Address))...)
	}
	return &Block{Cause: CauseProtected, Problem: providers.Refuse("lifecycle.prevent_destroy is set, and "+what, next)}
}

// unmarked returns the block that keeps an object whose mark somebody took off: they may want to
// keep it.
func unmarked(c *Change) *Block {
	again := "to have it marked again: put the block of %s back and apply, then repeat this"
	if c.Want != nil {
		again = "to have it marked again: apply the block of %s as it was, then repeat this"
	}
	return &Block{Cause: CauseUnmarked, Problem: providers.Refuse(
		fmt.Sprintf("somebody took its owner mark off, and this is a %s: nothing is deleted on the record's word", c.Action),
		append(providers.Say(fmt.Sprintf(again, c.Address)), providers.SayVmctl("to let go of it: ", "state", "rm", "--force", c.Address.String())...),
	)}
}

func isPrevented(policy cty.Value) bool {
	return ctyread.True(ctyread.Attr(policy, "lifecycle"), "prevent_destroy")
}

// lacking blocks a change for which the host or the spec's folder lacks the means, before any
// step.
func (d *differ) lacking(c *Change) {
	missing := d.world.systems[c.System].Inventory.Missing[c.Kind]
	if c.Blocked != nil {
		return
	}
	if makes := c.Action == providers.Create || c.Action == providers.ReplaceIt; makes && c.Want != nil && len(c.Want.Missing) > 0 {
		f := c.Want.Missing[0]
		c.Blocked = &Block{Cause: CauseMissing, Problem: providers.Refuse(f.Detail, nil)}
		return
	}
	if missing == nil {
		return
	}
	switch c.Action {
	case providers.Create, providers.ReplaceIt, providers.RestartIt, providers.Start, providers.Recover:
		c.Blocked = &Block{Cause: CauseMissing, Problem: missing}
	case providers.Update, providers.Import, providers.Stop, providers.Destroy, providers.Adopt, providers.Forget, providers.Release, providers.NoOp:
	}
}

// unreadable blocks a change that would rest on an attribute that could not be
// read. Unknown never authorises a mutation.
func (d *differ) unreadable(c *Change) {
	if c.Blocked != nil || c.Action == providers.NoOp || c.Action == providers.Adopt {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(c.Object.Unreadable)) {
		for _, e := range c.Edits {
			if e.Path == path || strings.HasPrefix(e.Path, path+".") {
				c.Blocked = unread(providers.Refuse(fmt.Sprintf("%s could not be read: %s", path, c.Object.Unreadable[path]), nil))
				return
			}
		}
	}
}

// outdated reports whether the record differs from the object, although the object is as wanted:
// a run was cut short after it acted, or somebody else was faster.
func (d *differ) outdated(c *Change) bool {
	o, r := c.Object, c.Record
	switch {
	case r.ID != string(o.ID), r.Name != o.Name, r.Reserved, markedGeneration(o) > r.Generation,
		!slices.Equal(r.Uses, c.Needs), c.sensitivityChanged():
		return true
	case o.Running != nil && !same(ctyread.Attr(r.Values, "running"), cty.BoolVal(*o.Running)):
		return true
	}
	return c.valuesAreBehind(d.attributes(c)) || o.Running != nil && *o.Running && c.showsMore()
}

// valuesAreBehind reports whether the record has other settings than the spec, whatever the object has.
func (c *Change) valuesAreBehind(attrs map[string]providers.Attribute) bool {
	r := c.Record
	if r == nil {
		return false
	}
	kept := keeping(c.Change.Want, r.Values, ignored(c.Policy, c.Change.Want))
	for name, want := range parts(kept) {
		if name == "running" || name == "name" {
			continue
		}
		v := ctyread.Attr(r.Values, name)
		if v == cty.NilVal && same(nothing(want), want) { // the record is of a build that had no such attribute
			continue
		}
		if v == cty.NilVal || !sameAs(attrs[name], v, want) {
			return true
		}
	}
	return false
}

// showsMore reports whether the system shows an attribute that is not in the spec, such as an address, and the
// record has another value of it.
func (c *Change) showsMore() bool {
	for name, shown := range parts(c.Object.Attrs) {
		if ctyread.Has(c.Change.Want, name) || shown.IsNull() || c.Object.Unreadable[name] != "" {
			continue
		}
		if !same(ctyread.Attr(c.Record.Values, name), shown) {
			return true
		}
	}
	return false
}

func markedGeneration(o *providers.Object) uint64 {
	if o.Owner == nil {
		return 0
	}
	return o.Owner.Generation
}
