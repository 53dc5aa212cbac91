package view

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// FormatVersion is the version of every JSON document. It rises when a field
// goes or changes its meaning; new fields leave it.
const FormatVersion = "1"

// PlanFormatVersion is the version of a plan as JSON: docs/plan-json.md describes it.
const PlanFormatVersion = "2"

// PlanDocument is a plan as JSON.
type PlanDocument struct {
	FormatVersion string           `json:"format_version"`
	Project       string           `json:"project"`
	ID            string           `json:"id"`
	Serial        uint64           `json:"serial"`
	Changes       []ChangeDocument `json:"changes"`
	Outputs       []OutputChange   `json:"outputs"`
	Reach         []ReachEntry     `json:"reach"`        // what resources newly reach beyond themselves
	ReachDigest   string           `json:"reach_digest"` // of reach, for apply --reach
	Findings      []FindingEntry   `json:"findings"`
	Checks        []CheckEntry     `json:"checks"` // every condition of the spec
	Deferred      []DeferredEntry  `json:"deferred"`
	Steps         []StepDocument   `json:"steps"`
	Summary       map[string]int   `json:"summary"`
	Targets       []string         `json:"targets,omitempty"`  // addresses that the plan is limited to; none: it is not limited
	Warnings      []string         `json:"warnings,omitempty"` // about the plan as a whole
}

// ChangeDocument is a change as JSON.
type ChangeDocument struct {
	Address  string         `json:"address"`
	Action   string         `json:"action"`
	Reason   string         `json:"reason"`
	Applies  string         `json:"applies"`
	Edits    []EditDocument `json:"edits"`
	Policies []EditDocument `json:"policies"` // how vmctl treats the object from now on

	Before       any `json:"before"`        // every attribute of the object; null: there is none
	After        any `json:"after"`         // every attribute once the change is carried out; null: there is no object any more
	AfterUnknown any `json:"after_unknown"` // true for each attribute that only apply will know, false for none
	PolicyBefore any `json:"policy_before"` // null: there is no record
	PolicyAfter  any `json:"policy_after"`  // null: it is not in the spec

	NotApplicable bool `json:"not_applicable,omitempty"` // nothing is read or done about it because of a setting of the object around it: Reason says which

	Mark     *MarkDocument  `json:"mark,omitempty"`
	Keys     *KeysDocument  `json:"keys,omitempty"`
	Blocked  *BlockDocument `json:"blocked"`
	Warnings []string       `json:"warnings,omitempty"`
	Preview  []ActDocument  `json:"preview,omitempty"` // what the system of the provider says that it would do
}

// ActDocument is one thing that a system would do, as JSON.
type ActDocument struct {
	Text    string `json:"text"`
	Applies string `json:"applies"` // live, or replace if it destroys something
}

// EditDocument is one edit as JSON. AfterUnknown says that a null After is a
// value that only apply will know.
type EditDocument struct {
	Path         string `json:"path"`
	Before       any    `json:"before"`
	After        any    `json:"after"`
	AfterUnknown bool   `json:"after_unknown,omitempty"`
	Applies      string `json:"applies"`
	Reason       string `json:"reason"`
}

// MarkDocument is the owner mark that a change writes, as JSON.
type MarkDocument struct {
	Before  string `json:"before"` // the address that the present mark names, "" for none
	After   string `json:"after"`
	Applies string `json:"applies"`
	Reason  string `json:"reason"`
}

// KeysDocument says as JSON that the guest of a VM gets other keys.
type KeysDocument struct {
	Applies string `json:"applies"`
	Reason  string `json:"reason"`
}

// BlockDocument is the block of a change as JSON: the reason why it must not happen.
type BlockDocument struct {
	Kind   string   `json:"kind"`  // blocked | refused | unknown | retained | skipped
	Cause  string   `json:"cause"` // docs/blocked.md
	Reason string   `json:"reason"`
	Next   []string `json:"next"`
}

// DeferredEntry is an address that a later round of apply reads.
type DeferredEntry struct {
	Address string `json:"address"`
	Until   string `json:"until"` // the VM that has to be ready before
}

func deferredJSON(all []planner.Deferred) []DeferredEntry {
	entries := []DeferredEntry{}
	for _, d := range all {
		entries = append(entries, DeferredEntry{Address: d.Address.String(), Until: d.Until.String()})
	}
	return entries
}

// StepDocument is a step as JSON.
type StepDocument struct {
	ID       int     `json:"id"`
	Address  string  `json:"address"`
	Op       string  `json:"op"`
	Phase    string  `json:"phase"`
	Class    string  `json:"class"`
	After    []int   `json:"after"`
	TimeoutS float64 `json:"timeout_s"`
	Risk     string  `json:"risk"`
}

// PlanJSON returns the document of a plan, for a run with own flags.
func PlanJSON(p *planner.Plan, own OwnFlags) PlanDocument {
	d := PlanDocument{
		FormatVersion: PlanFormatVersion, Project: p.Project.Name, ID: p.Project.Lineage(), Serial: p.Serial,
		Outputs: []OutputChange{}, Changes: []ChangeDocument{}, Findings: FindingEntries(p.Findings, own), Checks: CheckEntries(p.Checks), Deferred: deferredJSON(p.Deferred),
		Steps: []StepDocument{}, Summary: summaryJSON(p.Summary), Reach: Reached(p.Reach), ReachDigest: planner.ReachDigest(p.Reach),
	}
	d.Summary["tidy"] = len(tidied(p))
	for _, c := range p.Changes {
		d.Changes = append(d.Changes, changeJSON(c, own))
	}
	for _, s := range p.Steps {
		d.Steps = append(d.Steps, stepJSON(s))
	}
	return d
}

func summaryJSON(s planner.Summary) map[string]int {
	all := map[string]int{"blocked": s.Blocked, "refused": s.Refused, "unknown": s.Unknown, "retained": s.Retained, "skipped": s.Skipped, "deferred": s.Deferred, "not_applicable": s.Inapplicable}
	for _, l := range looks {
		all[string(l.action)] = s.Actions[l.action]
	}
	return all
}

func changeJSON(c planner.Change, own OwnFlags) ChangeDocument {
	d := ChangeDocument{
		Address: c.Address.String(), Action: string(c.Action), Reason: c.Reason,
		Applies: string(c.Applies), Edits: editsJSON(c.Edits), Policies: editsJSON(c.Policies), Warnings: c.Warnings, NotApplicable: c.Inapplicable,
	}
	after := c.After()
	d.Before, d.After, d.AfterUnknown = Plain(c.Before()), Plain(after), unknownJSON(after)
	if c.Record != nil && !c.Record.Reserved {
		d.PolicyBefore = Plain(c.Record.Policy)
	}
	if c.Want != nil && c.Action != providers.Destroy {
		d.PolicyAfter = Plain(c.Want.Policy)
	}
	if c.Mark != nil {
		d.Mark = &MarkDocument{Before: c.Mark.Before.String(), After: d.Address, Applies: string(providers.Live), Reason: c.Mark.Reason}
	}
	if c.Rekey != nil {
		d.Keys = &KeysDocument{Applies: string(c.Rekey.Applies), Reason: c.Rekey.Reason}
	}
	if c.Preview != nil {
		for _, act := range c.Preview.Acts {
			d.Preview = append(d.Preview, ActDocument{Text: act.Text, Applies: string(act.Applies)})
		}
	}
	if c.Blocked != nil {
		d.Blocked = &BlockDocument{Kind: string(c.Blocked.Kind()), Cause: string(c.Blocked.Cause), Reason: c.Blocked.Error(), Next: list(own.Advice(c.Blocked.Next))}
	}
	return d
}

func editsJSON(all []providers.Edit) []EditDocument {
	docs := []EditDocument{}
	for _, e := range all {
		docs = append(docs, EditDocument{
			Path: e.Path, Before: Plain(e.Before), After: Plain(e.After), AfterUnknown: !known(e),
			Applies: string(e.Verdict.Applies), Reason: e.Verdict.Reason,
		})
	}
	return docs
}

// unknownJSON returns true for an unknown value, an object or a list of such results if v has an
// unknown part, else false.
func unknownJSON(v cty.Value) any {
	switch {
	case v == cty.NilVal || v.IsMarked():
		return false
	case !v.IsKnown():
		return true
	case v.IsNull() || v.IsWhollyKnown() || !v.CanIterateElements():
		return false
	case v.Type().IsObjectType() || v.Type().IsMapType():
		all := map[string]any{}
		for _, name := range names(v) {
			if part := unknownJSON(attribute(v, name)); part != false {
				all[name] = part
			}
		}
		return all
	}
	all := []any{}
	for it := v.ElementIterator(); it.Next(); {
		_, element := it.Element()
		all = append(all, unknownJSON(element))
	}
	return all
}

func known(e providers.Edit) bool {
	if e.After == cty.NilVal {
		return true
	}
	return e.After.IsWhollyKnown()
}

func stepJSON(s planner.Step) StepDocument {
	risk := s.Risk
	if risk == "" {
		risk = providers.NoRisk
	}
	return StepDocument{
		ID: s.ID, Address: s.Address.String(), Op: s.Op, Phase: string(s.Phase), Class: string(s.Class),
		After: list(s.After), TimeoutS: s.Timeout.Seconds(), Risk: string(risk),
	}
}

// list returns all, never nil, so that JSON has no null.
func list[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// Addresses lists addresses as text.
func Addresses(all []spec.Address) []string {
	texts := []string{}
	for _, a := range all {
		texts = append(texts, a.String())
	}
	return texts
}
