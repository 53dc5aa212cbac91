package view

import (
	"encoding/json"
	"reflect"

	"vmctl/spec"
)

// OutputChange is an output before and after a plan. Before is its value with the records as they are.
type OutputChange struct {
	Name         string `json:"name"`
	Before       any    `json:"before"` // null: it is not known yet
	After        any    `json:"after"`
	AfterUnknown bool   `json:"after_unknown"` // only apply will know After
	Sensitive    bool   `json:"sensitive"`
}

// OutputChanges pairs the outputs before a plan with those after it. Both have the same names.
func OutputChanges(before, after []spec.Output) []OutputChange {
	all := []OutputChange{}
	for i, o := range after {
		c := OutputChange{Name: o.Name, AfterUnknown: !o.Value.IsWhollyKnown(), Sensitive: o.Sensitive}
		if o.Sensitive {
			c.Before, c.After = "(sensitive)", "(sensitive)"
		} else {
			c.Before, c.After = Plain(before[i].Value), Plain(o.Value)
		}
		all = append(all, c)
	}
	return all
}

// outputs lists the outputs that the plan changes, or all.
func (p *page) outputs(all []OutputChange, verbose bool) {
	titled := false
	width := 0
	for _, o := range all {
		width = max(width, Width(Text(o.Name)))
	}
	for _, o := range all {
		if !verbose && !o.changes() {
			continue
		}
		if !titled {
			p.heading("Outputs")
			titled = true
		}
		p.put(2, 6, padded(in(bold, o.Name), width+1), txt(" "+o.text(p.symbol("→", "->"))))
	}
}

func (o OutputChange) changes() bool {
	return o.AfterUnknown || !reflect.DeepEqual(o.Before, o.After)
}

// text writes the values as JSON: `null → 2222`.
func (o OutputChange) text(arrow string) string {
	after := plainText(o.After)
	if o.AfterUnknown {
		after = "(known after apply)"
	}
	if before := plainText(o.Before); before != after {
		return before + " " + arrow + " " + after
	}
	return after
}

// plainText writes a value of Plain: none for null, a mask as it is, else as JSON.
func plainText(v any) string {
	switch v {
	case nil:
		return "none"
	case any("(sensitive)"):
		return "(sensitive)"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "(no text)"
	}
	return string(text)
}
