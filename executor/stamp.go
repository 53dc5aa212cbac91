package executor

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"vmctl/condition"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// messageLimit is the length of a message in a record (bytes): the whole error is in the journal.
const messageLimit = 160

// producerOf returns the producer of a condition of a change; "": nobody produces it.
func producerOf(c *planner.Change, kind string) string {
	for _, d := range c.Conditions {
		if d.Type == kind {
			return d.Producer
		}
	}
	return ""
}

// stamped returns a record with a report about a condition for a generation. A report without a declared
// producer is ignored.
func (x *execution) stamped(r state.Record, c *planner.Change, report condition.Report, generation uint64) state.Record {
	producer := producerOf(c, report.Type)
	if producer == "" {
		return r
	}
	message, _, _ := strings.Cut(report.Message, "\n")
	for len(message) > messageLimit {
		_, size := utf8.DecodeLastRuneInString(message)
		message = message[:len(message)-size]
	}
	report.Message = message
	r.Conditions = r.Conditions.With(report, condition.Stamp{Generation: generation, At: x.Now().UTC().Truncate(time.Second), Producer: producer})
	return r
}

// stampedAll returns a record with a report about each condition that its change has a producer for. A report that
// is not known leaves the condition as it is.
func (x *execution) stampedAll(r state.Record, c *planner.Change, report func(kind string) (now condition.Report, known bool)) state.Record {
	for _, d := range c.Conditions {
		if now, known := report(d.Type); known {
			now.Type = d.Type
			r = x.stamped(r, c, now, r.Generation)
		}
	}
	return r
}

// withConditions updates the conditions of a record after a step that succeeded. old is the record before
// the step.
func (x *execution) withConditions(n, old state.Record, step planner.Step, r providers.Result) state.Record {
	c := &x.Plan.Changes[step.Change]
	if n.Generation > old.Generation && !x.stillComesUp(step.Change) {
		n.Conditions = n.Conditions.Confirm(old.Generation, n.Generation)
	}
	switch step.Phase {
	case providers.PhaseMake:
		n = x.stampedAll(n, c, func(kind string) (condition.Report, bool) {
			if x.rises(step.Change) || x.awaits(step.Change, kind) {
				return condition.Report{Status: condition.False, Reason: condition.Pending, Message: "it was made, and is not up yet"}, true
			}
			return off("it was made, and is off"), runs(c.Kind)
		})
	case providers.PhaseUp:
		n = x.stampedAll(n, c, func(kind string) (condition.Report, bool) {
			now, _ := n.Conditions.Of(kind)
			stays := r.How == providers.AlreadyTrue && now.Status == condition.True && now.Satisfied(n.Generation)
			return x.started(step.Change, kind), !stays
		})
	case providers.PhaseReady:
		if r.How != providers.NotNeeded && step.Condition != "" {
			n = x.stamped(n, c, condition.Report{Type: step.Condition, Status: condition.True, Reason: condition.Ready}, n.Generation)
		}
	case providers.PhaseDown:
		n = x.stampedAll(n, c, func(string) (condition.Report, bool) { return x.wentOff(step.Change, "it is off"), true })
	case providers.PhasePrepare, providers.PhaseRecover, providers.PhaseRelease, providers.PhaseFree, providers.PhaseRemove, providers.PhaseReserve,
		providers.PhaseChange, providers.PhaseResume, providers.PhaseTidy:
	}
	for _, report := range r.Conditions {
		n = x.stamped(n, c, report, n.Generation)
	}
	return n
}

// started returns the report about a condition of an object that was started.
func (x *execution) started(change int, kind string) condition.Report {
	switch {
	case x.awaits(change, kind):
		return condition.Report{Status: condition.False, Reason: condition.Starting, Message: "it was started"}
	case x.Plan.Changes[change].Excuses(kind):
		return notAwaited()
	default:
		return condition.Report{Status: condition.Unknown, Reason: condition.NotAwaited, Message: "it was started, and nobody waited"}
	}
}

func notAwaited() condition.Report {
	return condition.Report{Status: condition.NotApplicable, Reason: condition.NotAwaited, Message: "the spec does not wait for it"}
}

// wentOff returns the report about a condition of an object that is off. If the change brings the object up again, the
// status is false, so that no wait ends in between.
func (x *execution) wentOff(change int, message string) condition.Report {
	r := off(message)
	if x.rises(change) {
		r.Status = condition.False
	}
	return r
}

// off returns the report about a condition of an object that is off and stays off.
func off(message string) condition.Report {
	return condition.Report{Status: condition.NotApplicable, Reason: condition.Stopped, Message: message}
}

// runs reports whether objects of a kind run or are off.
func runs(kind spec.Kind) bool {
	_, is := spec.AttrAt(kind, "running")
	return is
}

// withFoundConditions returns a record with the conditions of an object that is as the plan saw it. One that runs and has
// no record counts as ready. before is the generation of the record until now.
func (x *execution) withFoundConditions(r state.Record, c *planner.Change, before uint64) state.Record {
	isOff := c.Object.Running != nil && !*c.Object.Running
	lost := c.Record == nil || c.Record.Reserved
	r.Conditions = r.Conditions.Confirm(before, r.Generation)
	return x.stampedAll(r, c, func(kind string) (condition.Report, bool) {
		switch {
		case isOff:
			return off("it was found off"), true
		case lost:
			return condition.Report{Status: condition.True, Reason: condition.Adopted, Message: "it was found running, and counts as ready"}, true
		default:
			return notAwaited(), c.Excuses(kind) && !r.Conditions.Satisfied(kind, r.Generation)
		}
	})
}

// withFailure returns a record with the conditions that a failed step has left, and whether it says anything about
// any.
func (x *execution) withFailure(r state.Record, step planner.Step, f *providers.Problem) (state.Record, bool) {
	c := &x.Plan.Changes[step.Change]
	report := condition.Report{Status: condition.False, Message: f.Error()}
	switch step.Phase {
	case providers.PhaseMake:
		report.Reason, report.Terminal = condition.CreateFailed, true
	case providers.PhaseUp:
		report.Reason, report.Terminal = condition.StartFailed, true
	case providers.PhaseDown, providers.PhaseRecover:
		report.Status, report.Reason = condition.Unknown, condition.StopFailed
	case providers.PhaseReady:
		report.Type, report.Reason = step.Condition, cmp.Or(f.Code, string(f.Outcome))
		report.Terminal = f.Outcome != providers.Timeout
		if f.Code == interruptedCode {
			report.Status, report.Terminal = condition.Unknown, false
		}
		return x.stamped(r, c, report, r.Generation), producerOf(c, step.Condition) != ""
	case providers.PhasePrepare, providers.PhaseRelease, providers.PhaseFree, providers.PhaseRemove, providers.PhaseReserve, providers.PhaseChange, providers.PhaseResume, providers.PhaseTidy:
		return r, false
	}
	if f.Outcome == providers.Stale || f.Outcome == providers.Unsafe { // it has done nothing
		return r, false
	}
	n := x.stampedAll(r, c, func(string) (condition.Report, bool) { return report, true })
	return n, len(n.Conditions) > 0
}

// awaits reports whether a change has a step that waits for a condition.
func (x *execution) awaits(change int, kind string) bool {
	return slices.ContainsFunc(x.steps[change], func(i int) bool {
		return x.Plan.Steps[i].Phase == providers.PhaseReady && x.Plan.Steps[i].Condition == kind
	})
}

// stillComesUp reports whether a change has yet to start its object or to wait for it, as far as that is known by now.
func (x *execution) stillComesUp(change int) bool {
	return !x.conditional.settled[change] && slices.ContainsFunc(x.steps[change], func(i int) bool {
		begins := x.states[i] != ended && x.states[i] != failed
		step := x.Plan.Steps[i]
		return begins && (step.Phase == providers.PhaseUp || step.Phase == providers.PhaseReady && step.Condition != "")
	})
}

// news returns the conditions of a record that are worth telling: those that a change waits for, once each.
func (x *execution) news(a spec.Address, change int) []condition.Condition {
	var all []condition.Condition
	w := x.watches[a]
	if w == nil {
		w = &condition.Watch{}
		x.watches[a] = w
	}
	for _, c := range x.records[a].Conditions {
		if w.News(c, x.Plan.Changes[change].Generation) {
			all = append(all, c)
		}
	}
	return all
}

// reported records what a running step reports about a condition, and tells of it once that is written down.
func (x *execution) reported(o outcome) {
	step := x.Plan.Steps[o.step]
	c := &x.Plan.Changes[step.Change]
	r, recorded := x.records[step.Address]
	if !recorded || producerOf(c, o.report.Type) == "" {
		return
	}
	before, _ := r.Conditions.Of(o.report.Type)
	r = x.stamped(r, c, *o.report, r.Generation)
	if now, _ := r.Conditions.Of(o.report.Type); now == before {
		return
	}
	x.remember(step.Address, r)
	note := x.entry(state.Note, o.step)
	note.Op, note.Put = opReported, &r
	x.unwritten = append(x.unwritten, note)
	for _, now := range x.news(step.Address, step.Change) {
		x.later(Event{Kind: ConditionChanged, Step: step, Conditions: []condition.Condition{now}})
	}
}

// opReported is the Op of the journal entries of reports that came while a step ran.
const opReported = "reported"

// waitOver is the cause of the end of a step's context: the condition that it waits for is decided.
type waitOver struct{ condition.Report }

// Error returns the reason of the condition.
func (w *waitOver) Error() string { return cmp.Or(w.Message, w.Reason) }

// ends reports whether a report ends the wait of a step: its condition is not applicable, or false for good.
func ends(step planner.Step, r condition.Report) bool {
	now := condition.Condition{Report: r}
	return step.Phase == providers.PhaseReady && step.Condition == r.Type && r.Status != condition.True && now.At(0) != condition.Waiting
}

// decided returns the result of a step whose wait was ended by a report.
func (w *waitOver) decided(fingerprint string) (providers.Result, *providers.Problem) {
	if w.Status == condition.NotApplicable {
		return providers.Result{How: providers.NotNeeded, Fingerprint: fingerprint, Evidence: []string{w.Error()}}, nil
	}
	return providers.Result{}, &providers.Problem{Outcome: providers.Failed, Code: w.Reason, Err: w}
}
