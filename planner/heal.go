package planner

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Healing says what of the records would be brought back.
type Healing struct {
	Targets []spec.Address // sorted: they ended without being asked, or left a stale lock
	Left    []Left         // by address: what is left as it is, and does not run
}

// Left is an address that healing leaves as it is, with the reason.
type Left struct {
	Address spec.Address
	Reason  string
	Unread  bool // it could not be read
}

// HealingOf selects the changes of d that bring back what is recorded, should run by its record, and
// ended without being asked. Diff made d with Heal set.
func HealingOf(d Delta, s *state.Snapshot) Healing {
	var h Healing
	for i := range d.Changes {
		c := &d.Changes[i]
		if c.Record == nil || c.Record.Reserved || d.Aside[c.Address] {
			continue
		}
		switch reason := c.leftBecause(s); {
		case reason != "":
			h.Left = append(h.Left, Left{Address: c.Address, Reason: reason, Unread: c.Blocked != nil && c.Blocked.Cause == CauseUnknown})
		case c.Action == providers.Start && !c.Unready, c.Action == providers.Recover,
			c.Action == providers.Update && c.Object != nil && leftBehind(c.Object):
			h.Targets = append(h.Targets, c.Address)
		}
	}
	return h
}

// leftBecause returns the reason for which healing leaves an object as it is; "": it is well, or is
// brought back.
func (c *Change) leftBecause(s *state.Snapshot) string {
	switch {
	case c.Blocked != nil:
		return c.Blocked.Error()
	case c.Object == nil:
		if c.Action == providers.Create {
			return "it is gone: an apply makes it again"
		}
		return ""
	case slices.ContainsFunc(s.Interrupted, func(e state.Entry) bool { return e.Address == c.Address }) && c.Action != providers.NoOp:
		return "an earlier run was cut short: an apply goes on from there"
	case c.Action == providers.Stop && ctyread.True(c.Prior, "running"): // an apply stops it
		return ""
	case c.Action == providers.Stop:
		return fmt.Sprintf("it is %s, and vmctl left it off", c.Object.State)
	case c.Action == providers.Start && !c.Unready && !endedUnasked(c.Object) && !c.endedWithHost():
		return "it is " + c.Object.State + ": it was shut down, and nothing shows that it failed"
	default:
		return ""
	}
}

// endedUnasked reports whether an object bears signs that it ended without being asked: it crashed,
// works only in part, or its last run left something behind.
func endedUnasked(o *providers.Object) bool {
	return leftBehind(o) || slices.ContainsFunc(o.Findings, func(f providers.Finding) bool {
		return f.Kind == providers.FindCrashed || f.Kind == providers.FindBroken
	})
}

// endedWithHost reports whether the host of an object was booted since the object was last seen
// ready: it ended with the host. A condition that is true became so after the last start.
func (c *Change) endedWithHost() bool {
	return !c.booted.IsZero() && slices.ContainsFunc(c.Record.Conditions, func(seen condition.Condition) bool {
		return seen.Status == condition.True && !seen.Since.IsZero() && seen.Since.Before(c.booted)
	})
}

// healed returns a resource with the policy of its record. Where the spec wants it off, it is not
// wanted to run, whatever the record says.
func healed(r spec.Resource, applied cty.Value, off bool) spec.Resource {
	r.Policy = applied
	if _, runs := spec.AttrAt(r.Address.Kind, "running"); runs && off {
		r.Want = with(r.Want, "running", cty.False)
	}
	return r
}
