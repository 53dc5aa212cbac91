package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Shown holds the status, resource, object and record of one address.
type Shown struct {
	Status   ResourceStatus
	Resource *spec.Resource    // nil: not in the spec
	Object   *providers.Object // nil: absent or unknown
	Record   *state.Record     // nil: none
	Own      OwnFlags
}

// Show shows one address as wanted, as observed and as recorded.
func Show(s Screen, d Shown) {
	p := &page{screen: s}
	r := d.Status
	p.put(0, 2, in(bold, r.Address.String()), txt("  "), in(stateStyle(r.State), r.State), txt(spaced(conditionText(r))))
	p.seenNext(nil, r.Next, 2)
	rows := []row{{name: "provider", value: r.Provider}}
	if r.Object != "" {
		rows = append(rows, row{name: "object", value: r.Object}, row{name: "id", value: r.ID})
	}
	if r.Endpoint != "" {
		rows = append(rows, row{name: "ssh", value: r.Endpoint})
	}
	if text := actionText(r.LastAction); text != "" {
		rows = append(rows, row{name: "last action", value: text})
	}
	p.rows(rows)
	p.conditions(append(slices.Clone(r.Conditions), r.Settled))
	p.facts(r.Facts)
	kind := r.Address.Kind
	if d.Resource != nil {
		p.heading("Wanted")
		p.rows(rowsOf(kind, d.Resource.Want, d.Resource.Policy))
	}
	if d.Object != nil {
		p.heading("Observed")
		p.rows(rowsOf(kind, d.Object.Now()))
		for _, path := range slices.Sorted(maps.Keys(d.Object.Unreadable)) {
			p.put(2, 4, in(yellow, path), txt(" could not be read: "+d.Object.Unreadable[path]))
		}
		p.findings(FindingEntries(d.Object.Findings, d.Own))
	}
	if d.Record != nil {
		p.heading(recordTitle(*d.Record))
		p.rows(recordRows(kind, *d.Record))
	}
	p.flush()
}

// facts lists what the system of an object tells of it beside its attributes.
func (p *page) facts(f *FactsDocument) {
	if f == nil {
		return
	}
	var rows []row
	for _, r := range []row{
		{name: "names", value: strings.Join(f.Names, ", ")},
		{name: "image", value: f.Image},
		{name: "path", value: f.Path},
		{name: "ports", value: strings.Join(f.Ports, ", ")},
		{name: "created", value: f.Created},
		{name: "started", value: f.Started},
		{name: "ended", value: f.Ended},
		{name: "digests", value: strings.Join(f.Digests, ", ")},
		{name: "platform", value: f.Platform},
	} {
		if r.value != "" {
			rows = append(rows, r)
		}
	}
	if f.Size != nil {
		rows = append(rows, row{name: "size", value: bytesText(*f.Size)})
	}
	for _, name := range slices.Sorted(maps.Keys(f.Labels)) {
		rows = append(rows, row{name: "label " + name, value: f.Labels[name]})
	}
	if len(rows) > 0 {
		p.heading("Facts")
		p.rows(rows)
	}
}

// conditions lists conditions with their reasons, generations and producers.
func (p *page) conditions(all []ConditionDocument) {
	var rows []row
	for _, c := range all {
		if c.Type == "" {
			continue
		}
		text := statusWord(condition.Status(c.Status))
		if c.Reason != "" {
			text += " (" + c.Reason + ")"
		}
		if c.Message != "" {
			text += ": " + c.Message
		}
		if c.Generation > 0 {
			text += fmt.Sprintf(", generation %d", c.Generation)
		}
		if c.Since != nil {
			text += ", since " + c.Since.Format(time.RFC3339)
		}
		if c.Producer != "" {
			text += ", by " + c.Producer
		}
		rows = append(rows, row{name: c.Type, value: text})
	}
	if len(rows) > 0 {
		p.heading("Conditions")
		p.rows(rows)
	}
}

func spaced(text string) string {
	if text == "" {
		return ""
	}
	return "  " + text
}

func recordTitle(r state.Record) string {
	title := fmt.Sprintf("Recorded (generation %d, started %s, replaced %s", r.Generation, times(r.Starts), times(r.Replaced))
	if r.LastStop != "" {
		title += ", last stop " + r.LastStop
	}
	return title + ")"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func rowsOf(kind spec.Kind, values ...cty.Value) []row {
	var rows []row
	for _, v := range values {
		for _, l := range leaves("", v) {
			if l.value.IsKnown() && l.value.IsNull() {
				continue
			}
			rows = append(rows, row{name: l.path, value: spec.FormatValue(kind, l.path, l.value)})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	return rows
}

// recordRows returns the rows of a record. It has only digests of its sensitive values.
func recordRows(kind spec.Kind, r state.Record) []row {
	rows := rowsOf(kind, r.Values, r.Policy)
	for path := range r.Digests {
		rows = append(rows, row{name: path, value: "(sensitive)"})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	return rows
}

func (p *page) rows(rows []row) {
	width := 0
	for _, r := range rows {
		width = max(width, Width(r.name))
	}
	for _, r := range rows {
		if p.narrow() {
			p.put(2, 4, whole(txt(r.name)), txt("  "+r.value))
			continue
		}
		p.put(2, 4, padded(txt(r.name), width+1), txt(" "+r.value))
	}
}

// ShowJSON returns the document of one address.
func ShowJSON(d Shown) ShowDocument {
	doc := ShowDocument{FormatVersion: FormatVersion, Status: d.Status, Findings: []FindingEntry{}}
	if d.Resource != nil {
		doc.Wanted = map[string]any{"want": Plain(d.Resource.Want), "policy": Plain(d.Resource.Policy)}
	}
	if d.Object != nil {
		doc.Observed = Plain(d.Object.Now())
		doc.Findings = FindingEntries(d.Object.Findings, d.Own)
	}
	if r := d.Record; r != nil {
		doc.Record = &RecordDocument{
			Provider: r.Provider.String(), ID: r.ID, Name: r.Name, Generation: r.Generation, Starts: r.Starts,
			Replaced: r.Replaced, LastStop: r.LastStop, Spec: r.Spec, Conditions: conditionsJSON(r.Conditions), Values: Plain(r.Values), Policy: Plain(r.Policy), Sensitive: slices.Sorted(maps.Keys(r.Digests)), Uses: Addresses(r.Uses), Was: Addresses(r.Was),
		}
	}
	return doc
}

// OutputDocument is one output as JSON. Value is null while it is unknown, and if it is
// sensitive and the user did not ask for it by name.
type OutputDocument struct {
	Value     any    `json:"value"`
	Known     bool   `json:"known"`
	Sensitive bool   `json:"sensitive"`
	Reason    string `json:"reason,omitempty"` // why it cannot be evaluated
}

// OutputsDocument is `output` as JSON.
type OutputsDocument struct {
	FormatVersion string                    `json:"format_version"`
	Outputs       map[string]OutputDocument `json:"outputs"`
}

// OutputsJSON returns outputs as JSON, never null. It leaves out sensitive values.
func OutputsJSON(all []spec.Output) map[string]OutputDocument {
	docs := map[string]OutputDocument{}
	for _, o := range all {
		docs[o.Name] = OutputJSON(o)
		if o.Sensitive {
			docs[o.Name] = OutputDocument{Known: o.Value.IsWhollyKnown(), Sensitive: true, Reason: o.Problem()}
		}
	}
	return docs
}

// OutputJSON returns one output, asked for by name, as JSON.
func OutputJSON(o spec.Output) OutputDocument {
	v, _ := o.Value.UnmarkDeep()
	return OutputDocument{Value: Plain(v), Known: v.IsWhollyKnown(), Sensitive: o.Sensitive, Reason: o.Problem()}
}

// Outputs lists outputs. The value of a sensitive one is not shown.
func Outputs(s Screen, all []spec.Output) {
	p := &page{screen: s}
	width := 0
	for _, o := range all {
		width = max(width, Width(o.Name))
	}
	for _, o := range all {
		p.put(0, 2, padded(txt(o.Name), width), txt(" = "+outputText(o)))
	}
	p.flush()
}

func outputText(o spec.Output) string {
	if o.Sensitive && o.Problem() == "" {
		return "(sensitive)"
	}
	return RawOutput(o)
}

// RawOutput returns an output's value as text: a string as it is, anything else as JSON.
func RawOutput(o spec.Output) string {
	v, _ := o.Value.UnmarkDeep()
	switch {
	case o.Problem() != "":
		return "(not known: " + strings.TrimSuffix(o.Problem(), ".") + ")"
	case !v.IsWhollyKnown():
		return "(not known yet)"
	case v.Type() == cty.String && !v.IsNull():
		return v.AsString()
	}
	text, err := json.Marshal(Plain(v))
	if err != nil {
		return "(" + v.Type().FriendlyName() + ")"
	}
	return string(text)
}
