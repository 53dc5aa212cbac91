package view

import (
	"slices"
	"strconv"
	"strings"

	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
)

// SummaryOptions holds the parts of a shown summary beside the results of the steps.
type SummaryOptions struct {
	Command string   // "Apply"
	Next    []string // the next commands, a line each
	// Deferred lists the addresses that can be read now, for the next plan.
	Deferred []planner.Deferred
	Later    bool             // another plan was carried out before
	Before   executor.Summary // of the plans before
	Expired  bool             // it was interrupted because its time was up
	Skipped  int              // the resources that the plan left out because they could not be read
	Own      OwnFlags
}

// Summary shows the end of an apply: the steps that were done, failed or did not run, the VMs
// that are down, and the next commands.
func Summary(s Screen, sum executor.Summary, o SummaryOptions) {
	p := &page{screen: s}
	p.blank()
	p.verdict(sum, o)
	p.warned(sum.Warned, o.Own)
	if !sum.OK() {
		p.doneSteps(slices.Concat(o.Before.Done, sum.Done))
		p.failedSteps(sum.Failed, o.Own)
		p.notRun(sum.NotRun)
	}
	if len(sum.Down) > 0 {
		p.blank()
		p.put(0, 2, in(red, "Down:"), txt(" "+strings.Join(Addresses(sum.Down), ", ")+
			" was taken down by this run and is not up again."))
	}
	if len(o.Next) > 0 {
		p.heading("Next")
		for _, line := range o.Next {
			p.put(2, 4, txt(line))
		}
	}
	p.flush()
}

func (p *page) verdict(sum executor.Summary, o SummaryOptions) {
	command := o.Command
	switch {
	case sum.Interrupted && o.Expired:
		p.put(0, 2, in(yellow, command+" ran out of time:"), txt(" "+tally(sum, o)))
	case sum.Interrupted:
		p.put(0, 2, in(yellow, command+" was interrupted:"), txt(" "+tally(sum, o)))
	case !sum.OK():
		p.put(0, 2, in(red, command+" failed:"), txt(" "+tally(sum, o)))
	case len(o.Deferred) > 0:
		p.put(0, 2, in(green, "Done so far:"), txt(" "+tally(sum, o)+" Now what was deferred is read: "+
			shortList(Addresses(deferredAddresses(o.Deferred)))+"."))
	case o.Later && len(sum.Done)+len(sum.Warned) == 0:
		p.put(0, 2, in(green, command+" is complete:"), txt(" nothing more was to be done; "+tally(sum, o)))
	case len(o.Before.Warned)+len(sum.Warned) > 0:
		p.put(0, 2, in(green, command+" is complete"), txt(", with warnings: "+tally(sum, o)))
	default:
		p.put(0, 2, in(green, command+" is complete:"), txt(" "+tally(sum, o)))
	}
}

// tally counts the steps of all plans that were carried out.
func tally(sum executor.Summary, o SummaryOptions) string {
	parts := []string{plural(len(o.Before.Done)+len(sum.Done), "step") + " done"}
	for _, t := range []struct {
		n    int
		word string
	}{{len(sum.Failed), "failed"}, {len(o.Before.Warned) + len(sum.Warned), "warned"}, {len(sum.NotRun), "not run"}} {
		if t.n > 0 {
			parts = append(parts, strconv.Itoa(t.n)+" "+t.word)
		}
	}
	text := strings.Join(parts, ", ")
	if o.Skipped > 0 {
		text += "; left out: " + plural(o.Skipped, "resource")
	}
	text += "."
	if o.Later {
		text = "in all " + text
	}
	return text
}

func (p *page) doneSteps(all []executor.StepResult) {
	if len(all) == 0 {
		return
	}
	p.heading("Done")
	for _, r := range all {
		how := ""
		if r.How != providers.Done && r.How != "" {
			how = " (" + strings.ReplaceAll(string(r.How), "_", " ") + ")"
		}
		p.put(2, 4, whole(txt(r.Step.Address.String())), txt("  "+r.Step.Op+how))
	}
}

func (p *page) failedSteps(all []executor.StepResult, own OwnFlags) {
	if len(all) == 0 {
		return
	}
	p.heading("Failed")
	p.failures(all, red, own)
}

func (p *page) warned(all []executor.StepResult, own OwnFlags) {
	if len(all) == 0 {
		return
	}
	p.heading("Warnings")
	p.failures(all, yellow, own)
}

func (p *page) failures(all []executor.StepResult, s style, own OwnFlags) {
	for _, r := range all {
		p.put(2, 4, whole(in(s, r.Step.Address.String())), txt("  "+r.Step.Op+reason(r.Failure)))
		if r.Failure != nil {
			problem := ProblemOf(r.Failure, own)
			p.put(4, 6, in(dim, "code:"), txt(" "+problem.Code))
			p.seenNext(problem.Seen, problem.Next, 4)
		}
	}
}

func (p *page) notRun(all []planner.Step) {
	if len(all) == 0 {
		return
	}
	p.heading("Not run")
	for _, s := range all {
		p.put(2, 4, whole(txt(s.Address.String())), txt("  "+s.Op))
	}
}
