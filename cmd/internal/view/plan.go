package view

import (
	"fmt"
	"strings"
	"time"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// PlanOptions holds the parts of a shown plan that the plan itself lacks, and how much to
// show.
type PlanOptions struct {
	Verbose bool   // like changes are not collapsed, steps tell everything
	Idle    string // the text for a plan that does nothing; "": the default text
	Title   string // "Plan for quickstart"
	// Destroys says that it is a plan of destroy.
	Destroys bool
	Holder   *state.Holder // the holder of the run lock; nil: nobody
	// Providers lists the providers of the spec, to show which settings are defaults.
	Providers []spec.Provider
	Offer     Offer
	// Targets lists the addresses that the plan is limited to; none: it is not limited. Pulls
	// is the phrase for the resources that the targets bring in.
	Targets []string
	Pulls   string
	Picked  bool // the plan is about objects that the command has picked: others may exist
	// Warnings are about the plan as a whole.
	Warnings []string
	Own      OwnFlags
	// Outputs holds the values of the outputs before and after the plan.
	Outputs []OutputChange
}

// Offer describes what the reader can do next with a plan.
type Offer struct {
	Apply   string // the command that carries the plan out, or the rest of it
	Running bool   // it is about to be carried out
	Later   bool   // a plan was carried out before it
}

// longValue is the number of cells after which a plan cuts a value, unless it is verbose.
const longValue = 240

// Plan shows a plan: the summary and the risks first, then findings, changes and steps, and
// the next command at the end. It returns what it showed, to be kept in a plan file.
func Plan(s Screen, p *planner.Plan, o PlanOptions) Review {
	w := &page{screen: s, keeps: true}
	if !o.Verbose {
		w.brief = longValue
	}
	head := counts(p.Summary, len(tidied(p)))
	switch {
	case head == nothingAtAll && o.Picked:
		head = "nothing to remove."
	case head == nothingAtAll && len(p.Findings) > 0:
		head = "nothing is wanted; something was found."
	}
	w.put(0, 2, in(bold, o.Title+":"), txt(" "+head))
	w.limited(o, "whatever else the files and the state hold is not in this plan.")
	for _, text := range o.Warnings {
		w.put(0, 2, in(yellow, "Warning:"), txt(" "+text))
	}
	w.risks(p, o.Own)
	w.holder(o.Holder)
	w.findings(FindingEntries(unsaid(p), o.Own))
	w.reach(p.Reach)
	w.changes(p, o)
	w.inapplicable(p.Changes)
	w.deferred(p.Deferred)
	w.outputs(o.Outputs, o.Verbose)
	w.unknownChecks(CheckEntries(p.Checks))
	w.steps(p, o.Verbose)
	const rest = "the rest may differ from the files."
	if !o.Offer.Running {
		w.ending(p, o)
		w.limited(o, rest)
	} else { // the events of the run follow the ending
		if len(o.Targets) > 0 {
			w.blank()
		}
		w.limited(o, rest)
		w.ending(p, o)
	}
	w.flush()
	return w.kept
}

// limited shows that a plan is limited to targets.
func (p *page) limited(o PlanOptions, rest string) {
	if len(o.Targets) == 0 {
		return
	}
	p.put(0, 2, in(yellow, "Limited"), txt(" to "+shortList(o.Targets)+" and "+o.Pulls+": "+rest))
}

// tidied lists in words, by the index of the change, the steps on unchanged resources: they
// write a record, or settle what an earlier run left.
func tidied(p *planner.Plan) map[int][]string {
	doing := map[int][]string{}
	for _, s := range p.Steps {
		if p.Changes[s.Change].Action == providers.NoOp {
			doing[s.Change] = append(doing[s.Change], wordsOf(s).Doing)
		}
	}
	return doing
}

const nothingAtAll = "nothing is wanted and nothing exists."

// counts puts a summary in words: `1 to create, 1 to tidy, 2 unchanged; 1 blocked`.
// tidy counts the unchanged resources that have steps.
func counts(s planner.Summary, tidy int) string {
	var actions, blocks []string
	for _, l := range looks {
		n := s.Actions[l.action]
		if l.action == providers.NoOp {
			n -= tidy
			if tidy > 0 {
				actions = append(actions, fmt.Sprintf("%d to tidy", tidy))
			}
		}
		if n > 0 {
			actions = append(actions, fmt.Sprintf("%d %s", n, l.look.verb))
		}
	}
	for _, b := range []struct {
		n    int
		word string
	}{{s.Blocked, "blocked"}, {s.Refused, "refused"}, {s.Unknown, "unknown"}, {s.Retained, "retained"}, {s.Skipped, "skipped"}, {s.Deferred, "deferred"}, {s.Inapplicable, "not applicable"}} {
		if b.n > 0 {
			blocks = append(blocks, fmt.Sprintf("%d %s", b.n, b.word))
		}
	}
	if len(actions) == 0 && len(blocks) == 0 {
		return nothingAtAll
	}
	var parts []string
	for _, part := range []string{strings.Join(actions, ", "), strings.Join(blocks, ", ")} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ") + "."
}

func (p *page) holder(h *state.Holder) {
	if h == nil {
		return
	}
	p.blank()
	p.put(0, 2, in(yellow, "Note:"), txt(" "+HolderText(*h)+". What it changes is not in this plan."))
}

// HolderText describes the holder of the run lock.
func HolderText(h state.Holder) string {
	return fmt.Sprintf("the run lock is held by %s (process %d on %s, since %s)",
		h.Command, h.PID, h.Host, h.Since.UTC().Format(time.RFC3339))
}

func (p *page) ending(plan *planner.Plan, o PlanOptions) {
	switch {
	case !plan.Pending() && o.Idle != "":
		p.blank()
		p.put(0, 0, in(bold, "No changes."), txt(" "+o.Idle))
	case !plan.Pending() && len(plan.Findings) == 0:
		p.blank()
		p.put(0, 0, in(bold, "No changes."), txt(" What exists is what the files say."))
	case !plan.Pending():
		p.blank()
		p.put(0, 0, in(bold, "No changes."), txt(" What was found needs no step."))
	case plan.Forbidden():
		p.forbidden(plan, o)
	case plan.Summary.Skipped > 0 && len(plan.Steps)+len(plan.Deferred)+plan.Summary.Retained == 0:
		p.blank()
		p.put(0, 0, in(bold, "No changes."), txt(" What could not be read is left out, with what depends on it."))
	case o.Offer.Running:
		p.blank()
	default:
		p.blank()
		text := o.command() + " would carry out " + plural(len(plan.Steps), "step") + "."
		if len(plan.Deferred) > 0 {
			text = o.command() + " would carry out " + plural(len(plan.Steps), "step") + ", then plan what is deferred, and ask again."
		}
		p.put(0, 2, txt(text))
		p.command("Next:", o.Offer.Apply)
	}
}

// command returns the name of the command that carries out the plan.
func (o PlanOptions) command() string {
	if o.Destroys {
		return "Destroy"
	}
	return "Apply"
}

func (p *page) forbidden(plan *planner.Plan, o PlanOptions) {
	p.blank()
	text := o.command() + " would start nothing"
	if o.Offer.Running {
		text = "Nothing is started"
	}
	if o.Offer.Later {
		text = "Nothing more is started"
	}
	p.put(0, 2, in(red, text), txt(": "+Obstacles(plan.Summary)+"."))
	if len(plan.Steps) > 0 {
		p.command("To carry out the rest:", o.Offer.Apply)
	}
}

// Obstacles counts the changes that keep a plan from being carried out: `1 blocked, 2
// unknown`.
func Obstacles(s planner.Summary) string {
	return strings.TrimSuffix(counts(planner.Summary{Blocked: s.Blocked, Refused: s.Refused, Unknown: s.Unknown}, 0), ".")
}

// command shows a command on a line that is never broken.
func (p *page) command(label, command string) {
	if command == "" {
		return
	}
	if !p.narrow() {
		p.put(0, 2, txt(label+" "), whole(in(bold, command)))
		return
	}
	p.put(0, 2, txt(label))
	p.put(2, 2, whole(in(bold, command)))
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// worstRisks returns the worst risk of the steps of each change that has a risk.
func worstRisks(p *planner.Plan) map[int]providers.Risk {
	worst := map[int]providers.Risk{}
	for _, s := range p.Steps {
		switch s.Risk {
		case providers.DataLoss:
			worst[s.Change] = providers.DataLoss
		case providers.Downtime:
			if worst[s.Change] == "" {
				worst[s.Change] = providers.Downtime
			}
		case providers.NoRisk:
		default:
		}
	}
	return worst
}
