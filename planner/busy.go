package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"vmctl/internal/ctyread"
	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Busy lists the holders at work in a VM or a workspace, and says whether a step that takes it down
// interrupts them or waits for them (DESIGN.md, rule 8). Without Interrupt and Wait they block
// the step.
type Busy struct {
	Holders   []state.Holder // the holders when the plan was made
	Interrupt bool           // the user allowed vmctl to interrupt them
	Wait      time.Duration  // the longest wait for them; 0: no wait
}

// TakesDown reports whether a step ends what runs in a VM, or takes away the folder that jobs run in.
func TakesDown(s providers.Step) bool {
	return slices.Contains(natures[s.Address.Kind].endsWork, s.Phase)
}

// busy returns the holders at work in the object of a change, whether the user allowed vmctl to
// interrupt them, and the wait that the policy allows. Those in a workspace are interrupted with the
// VM around it alone: without its folder a job would run on.
func (d *differ) busy(c *Change) Busy {
	b := Busy{Holders: d.options.Busy[c.Address], Interrupt: d.options.Allow.Interrupt[c.Address]}
	if natures[c.Kind].endsAround {
		b.Interrupt = natures[c.Inside.Kind].runs && d.options.Allow.Interrupt[c.Inside]
	}
	// A record may lack it, or hold what a newer build wrote: it blocks then.
	if wait, err := spec.ParseWhenBusy(ctyread.Text(c.Policy, "when_busy")); err == nil {
		b.Wait = wait
	}
	return b
}

// findBusy adds a finding for each busy VM or workspace that this plan takes down, or would take down if it
// were not busy.
func (o *orderer) findBusy() {
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		blocked := c.Blocked != nil && c.Blocked.Cause == CauseBusy
		down := slices.ContainsFunc(o.own[i], func(n *node) bool { return TakesDown(n.step.Step) })
		if len(c.Busy.Holders) == 0 || !blocked && !down {
			continue
		}
		f := providers.Finding{Kind: providers.FindBusy, Address: c.Address, Object: c.Name}
		for _, h := range c.Busy.Holders {
			f.Evidence = append(f.Evidence, h.String())
		}
		switch {
		case blocked:
			f.Action = "not interrupted: it stays as it is"
		case c.Busy.Interrupt:
			f.Action = "interrupted, as --allow-interrupt says"
		default:
			f.Action = "waited for, at most " + spec.FormatDuration(int64(c.Busy.Wait/time.Second)) + ", before it is taken down"
		}
		o.plan.Findings = append(o.plan.Findings, f)
	}
}

// BusyReason says that a VM is busy, and names the first of those inside.
func BusyReason(holders []state.Holder) string {
	const most = 3
	var names []string
	for i, h := range holders {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(holders)-most))
			break
		}
		names = append(names, h.String())
	}
	return "it is busy: " + strings.Join(names, "; ")
}

// BusyNext returns the user's next steps when holders keep a VM from being taken down.
func BusyNext(c *Change) []providers.Advice {
	if natures[c.Kind].endsAround {
		return append(providers.SayVmctl("see which jobs run: ", "job", "list"), providers.SayVmctl("let them end, or end them: ", "job", "cancel", "ID")...)
	}
	next := providers.Say(
		"let them end, or end them where they run; then repeat the command",
		"or interrupt them: --allow-interrupt="+shellword.Quote(c.Address.String()),
	)
	if c.Want != nil && c.Busy.Wait == 0 {
		next = append(next, providers.Say(fmt.Sprintf("or have them waited for: when_busy = \"wait 30m\" in the block of %s", c.Address))...)
	}
	return next
}
