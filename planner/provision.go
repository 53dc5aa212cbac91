package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// script is a script of a VM with its history.
type script struct {
	name    string
	run     providers.ProvisionRun
	order   uint64
	history history
	assumed bool // there is no record: it is taken as done
}

// history says what is known of the earlier runs of a script in an object.
type history struct {
	ran     bool   // it ran to its end
	changed bool   // script or variables differ from those that ran
	unknown bool   // whether they differ is known only during apply
	missed  bool   // the object was started since
	failed  string // why its last run did not succeed; "": it did
}

// due decides whether a script runs in an object that is up. starts says that the object is started
// before.
func due(run providers.ProvisionRun, h history, starts bool) (reason string, is bool) {
	switch {
	case h.failed != "":
		return "its last run did not succeed: " + h.failed, true
	case !h.ran:
		return "it has not run yet", true
	}
	switch run {
	case providers.RunOnChange:
		switch {
		case h.changed:
			return "its script or variables changed", true
		case h.unknown:
			return "if its script or variables change: known after apply", true
		}
	case providers.RunEachStart:
		switch {
		case starts:
			return "it runs after each start", true
		case h.missed:
			return "it did not run after the last start", true
		}
	case providers.RunOnce:
	default:
		panic("unknown run " + string(run))
	}
	return "", false
}

// scripts returns the scripts of a change, in their order. They have a history only in the object that
// the record names.
func (d *differ) scripts(c *Change) []script {
	wanted := ctyread.KnownAttr(c.Change.Want, providers.ProvisionAttr)
	var all []script
	for name, block := range parts(wanted) {
		s := script{name: name, run: providers.RunOf(ctyread.Text(block, "run")), order: ctyread.Uint(block, "order")}
		recorded := c.Record != nil && c.Object != nil && c.Record.ID == string(c.Object.ID)
		switch {
		case recorded:
			s.history = d.historyOf(c, name, block)
		case c.Object != nil:
			s.assumed, s.history = true, history{ran: true}
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b script) int { return cmp.Compare(a.order, b.order) })
	return all
}

// historyOf returns the history of a script in the object of a record.
func (d *differ) historyOf(c *Change, name string, block cty.Value) history {
	was := c.Record.Provisions[name]
	h := history{ran: was.Digest != "", missed: was.Starts != c.Record.Starts, failed: was.Failed}
	if slices.ContainsFunc(d.begun[c.Address], func(e state.Entry) bool { return e.Op == providers.OpProvision(name) }) && !d.options.Held {
		h.failed = "it was interrupted"
	}
	if d.isPower() { // an edit is for an apply to make
		return h
	}
	if h.unknown = !spec.Revealed(block).IsWhollyKnown(); h.unknown || !h.ran {
		return h
	}
	same, _ := d.options.DigestKey.Provisioned(was.Digest, c.Record.ID, name, block) // recalled warns of a lost key
	h.changed = !same
	return h
}

// provisions decides about the scripts of a change, as its action is now.
func (c *Change) provisions() []providers.Provision {
	var all []providers.Provision
	up := ctyread.True(c.Change.Want, "running") && c.Blocked == nil
	starts, fresh := false, false
	switch c.Action {
	case providers.Create, providers.ReplaceIt:
		starts, fresh = true, true
	case providers.RestartIt, providers.Recover:
		starts = true
	case providers.Start:
		starts = c.Object == nil || c.Object.Running == nil || !*c.Object.Running
	case providers.Update, providers.Import, providers.Adopt, providers.NoOp:
		up = up && c.Object != nil && c.Object.Running != nil && *c.Object.Running
	case providers.Stop, providers.Destroy, providers.Forget, providers.Release:
		up = false
	}
	for _, s := range c.scripts {
		p := providers.Provision{Name: s.name, Assumed: s.assumed && !fresh}
		h := s.history
		if fresh {
			h = history{}
		}
		if up {
			p.Reason, p.Due = due(s.run, h, starts)
		}
		if p.Due {
			p.Fresh = !h.ran && h.failed == ""
			_, anyway := due(s.run, h, false)
			p.AtStart = !anyway && !fresh
			p.IfChanged = h.ran && h.unknown && !h.changed && h.failed == "" && s.run == providers.RunOnChange
		}
		all = append(all, p)
	}
	return all
}

// runsScripts reports whether a script runs in an object that is up and stays so.
func (c *Change) runsScripts() bool {
	return slices.ContainsFunc(c.scripts, func(s script) bool {
		_, is := due(s.run, s.history, false)
		return is
	})
}

// dueReason returns why a change of an object that is up runs scripts: "" if it runs none.
func dueReason(all []providers.Provision) string {
	var names []string
	reason := ""
	for _, p := range all {
		if p.Due {
			names, reason = append(names, p.Name), p.Reason
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("provision %s: %s", names[0], reason)
	default:
		return fmt.Sprintf("runs %d scripts", len(names))
	}
}

// tellScripts says of each edit of a script when it counts, and which scripts are taken as done. stays
// says that the object is up, and stays so.
func (c *Change) tellScripts(stays bool) {
	var assumed []string
	for _, s := range c.scripts {
		if s.assumed {
			assumed = append(assumed, s.name)
		}
	}
	if len(assumed) > 0 {
		c.Warnings = append(slices.Clip(c.Warnings),
			"no record says whether its scripts have run: they are assumed to have run: "+strings.Join(assumed, ", "))
	}
	for i := range c.Edits {
		rest, is := strings.CutPrefix(c.Edits[i].Path, providers.ProvisionAttr+".")
		if !is {
			continue
		}
		name, attr, _ := strings.Cut(rest, ".")
		c.Edits[i].Verdict.Reason = c.scriptReason(name, attr, stays)
	}
}

// scriptReason says when an edit of an attribute of a script counts.
func (c *Change) scriptReason(name, attr string, stays bool) string {
	i := slices.IndexFunc(c.scripts, func(s script) bool { return s.name == name })
	if i < 0 {
		return "removed from the spec; what it did in the guest stays"
	}
	s := c.scripts[i]
	reason, isDue := due(s.run, s.history, false)
	switch {
	case attr != "script" && attr != "env" && !isDue:
		return "takes effect at the next run"
	case s.run == providers.RunOnce && s.history.ran:
		return `it has run, and run = "once" does not repeat it`
	case stays && isDue:
		return reason
	default:
		return "it runs after the next start"
	}
}

// provisionEdits returns the edits of the scripts of a VM, without their verdicts. A script that
// is new or gone is one edit; the place of a script is none.
func provisionEdits(before, after cty.Value) []providers.Edit {
	var all []providers.Edit
	names := append(attributeNames(before), attributeNames(after)...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, is := ctyread.Attr(before, name), ctyread.Attr(after, name)
		for _, attr := range provisionAttrs(was, is) {
			e := providers.Edit{Path: providers.ProvisionAttr + "." + name + "." + attr, Before: ctyread.Attr(was, attr), After: ctyread.Attr(is, attr)}
			if e.After == cty.NilVal {
				e.After = cty.NullVal(e.Before.Type())
			}
			if e.Before == cty.NilVal {
				e.Before = nothing(e.After)
			}
			if !same(e.Before, e.After) {
				all = append(all, withheldEdit(e))
			}
		}
	}
	return all
}

// provisionAttrs lists the attributes that tell how a script changes: that of a script which is new or
// gone is its text.
func provisionAttrs(was, is cty.Value) []string {
	if was == cty.NilVal || is == cty.NilVal {
		return []string{"script"}
	}
	return slices.DeleteFunc(attributeNames(is), func(name string) bool { return name == "order" })
}
