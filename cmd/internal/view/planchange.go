package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// alike is the number of changes of one action and reason that a plan shows before it collapses
// the rest.
const alike = 20

func (p *page) changes(plan *planner.Plan, o PlanOptions) {
	shown := map[[2]string]int{}
	hidden := map[providers.Action]int{}
	titled := false
	told := map[string]bool{}
	tidy := tidied(plan)
	for i, c := range plan.Changes {
		if quiet(c) && tidy[i] == nil {
			continue
		}
		if !titled {
			p.heading("Changes")
			titled = true
		}
		like := [2]string{string(c.Action), untold(c)}
		if !o.Verbose && c.Blocked == nil && shown[like] >= alike {
			hidden[c.Action]++
			continue
		}
		shown[like]++
		if o.Verbose {
			clear(told)
		}
		p.change(c, wantedOptions{told: told, providers: o.Providers, tidy: tidy[i]})
	}
	for _, l := range looks {
		if n := hidden[l.action]; n > 0 {
			p.put(2, 4, in(dim, fmt.Sprintf("and %d more %s; --verbose shows them", n, l.look.verb)))
		}
	}
}

// quiet reports whether an unchanged resource has nothing to show: no warning and no edit.
func quiet(c planner.Change) bool {
	return c.Action == providers.NoOp && len(c.Warnings) == 0 && !c.Alters() && len(c.Policies) == 0
}

func (p *page) change(c planner.Change, o wantedOptions) {
	l, action := lookOf(c.Action), string(c.Action)
	if c.Blocked != nil {
		action += " (" + string(c.Blocked.Kind()) + ")"
	}
	head := []span{whole(in(l.style, p.symbol(l.symbol, l.ascii))), txt(" "), whole(in(bold, c.Address.String())), txt(" " + action)}
	switch {
	case len(o.tidy) > 0:
		head = append(head[:len(head)-1], txt(" tidy: "+strings.Join(o.tidy, ", ")))
	case c.Reason != "" && !c.Altered: // else its lines say why
		head = append(head, txt(": "+c.Reason))
	}
	p.put(2, 6, head...)
	for _, warning := range c.Warnings {
		p.put(6, 8, in(yellow, "warning"), txt(": "+warning))
	}
	p.previewed(c)
	switch c.Action {
	case providers.Create:
		p.wanted(c, o)
	case providers.Update, providers.RestartIt, providers.ReplaceIt, providers.Start, providers.Stop,
		providers.Import, providers.Adopt, providers.Forget, providers.Release, providers.Recover, providers.Destroy, providers.NoOp:
		p.alterations(c)
	default:
		panic("no way to show action " + string(c.Action))
	}
}

// previewed writes what the system of a change said that it would do.
func (p *page) previewed(c planner.Change) {
	if c.Preview == nil {
		return
	}
	for _, act := range c.Preview.Acts {
		look := dim
		if act.Applies == providers.Replace {
			look = red
		}
		p.put(6, 8, txt(c.Provider.Type+": "), in(look, act.Text))
	}
	if len(c.Preview.Acts) == 0 {
		p.put(6, 8, in(dim, c.Provider.Type+": nothing to change"))
	}
}

// alterations writes what a change alters: attributes, its mark and its keys, by name. It leaves
// out the reason that the block of the change tells.
func (p *page) alterations(c planner.Change) {
	var rows []row
	add := func(name, before, after string, v providers.Verdict) {
		if c.Blocked != nil && c.Blocked.Attr == name {
			v.Reason = ""
		}
		rows = append(rows, row{name: name, value: before + " " + p.symbol("→", "->") + " " + after, note: applies(v)})
	}
	for _, e := range c.Edits {
		if before, after, is := longTexts(e); is {
			rows = append(rows, row{name: e.Path, value: diffTitle(before, after, p.symbol("→", "->")), note: applies(e.Verdict), before: before, after: after})
			continue
		}
		add(e.Path, spec.FormatValue(c.Kind, e.Path, e.Before), spec.FormatValue(c.Kind, e.Path, e.After), e.Verdict)
	}
	for _, e := range c.Policies {
		rows = append(rows, row{
			name:  e.Path,
			value: spec.FormatValue(c.Kind, e.Path, e.Before) + " " + p.symbol("→", "->") + " " + spec.FormatValue(c.Kind, e.Path, e.After),
			note:  "policy",
		})
	}
	if c.Mark != nil {
		before := "none"
		if c.Mark.Before != (spec.Address{}) {
			before = c.Mark.Before.String()
		}
		add("mark", before, c.Address.String(), providers.Verdict{Applies: providers.Live, Reason: c.Mark.Reason})
	}
	if c.Rekey != nil {
		add("ssh.keys", "those it has", "new ones", *c.Rekey)
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	p.aligned(rows)
}

func applies(v providers.Verdict) string {
	note := "applies: " + string(v.Applies)
	if v.Reason != "" {
		note += "; " + v.Reason
	}
	return note
}

// aligned writes attributes, with their values below each other.
func (p *page) aligned(all []row) {
	width := 0
	for _, r := range all {
		width = max(width, Width(r.name))
	}
	for _, r := range all {
		r.width = width
		p.row(r)
		if r.before != r.after {
			p.lineDiff(r.before, r.after)
		}
	}
}

// row is one attribute with its value, and a note about it.
type row struct {
	name, value, note string
	width             int    // of the longest name of the list
	entire            bool   // the value is never cut
	before, after     string // texts whose difference follows; equal: none
}

func (p *page) row(r row) {
	if p.brief > 0 && !r.entire {
		r.value = cut(Text(r.value), p.brief)
	}
	var spans []span
	if p.narrow() {
		spans = []span{whole(txt(r.name)), txt("  " + r.value)}
	} else {
		spans = []span{padded(txt(r.name), r.width+1), txt(" " + r.value)}
	}
	if r.note != "" {
		spans = append(spans, in(dim, " ("+r.note+")"))
	}
	p.put(6, 8, spans...)
}

// wantedOptions holds what wanted needs beside the change.
type wantedOptions struct {
	told      map[string]bool // defaults that the plan has shown above
	providers []spec.Provider
	tidy      []string // the steps on an unchanged resource, in words
}

// wanted writes the attributes of a new object: those of its block, then the defaults with
// their origins.
func (p *page) wanted(c planner.Change, o wantedOptions) {
	left, above := map[string]bool{}, false
	var origins []string
	byOrigin := map[string][]string{}
	if c.Want != nil {
		for _, d := range c.Want.Defaults {
			left[d.Path] = true
			if d.Path == "provider" { // it has a line of its own
				continue
			}
			entry := d.Path + " " + spec.FormatValue(c.Kind, d.Path, d.Value)
			if o.told[d.Origin+" "+entry] {
				above = true
				continue
			}
			o.told[d.Origin+" "+entry] = true
			if byOrigin[d.Origin] == nil {
				origins = append(origins, d.Origin)
			}
			byOrigin[d.Origin] = append(byOrigin[d.Origin], entry)
		}
	}
	rows := []row{{name: "provider", value: c.Provider.String() + settings(c, o.providers), entire: true}}
	if c.Name != "" {
		rows = append(rows, row{name: "name", value: c.Name})
	}
	for _, l := range said(c, left) {
		rows = append(rows, row{name: l.path, value: spec.FormatValue(c.Kind, l.path, l.value)})
	}
	p.aligned(rows)
	for _, origin := range origins {
		p.put(6, 8, append([]span{in(dim, origin+":")}, entries(byOrigin[origin])...)...)
	}
	switch {
	case above && len(origins) > 0:
		p.put(6, 8, in(dim, "other defaults as above; --verbose repeats them"))
	case above:
		p.put(6, 8, in(dim, "defaults as above; --verbose repeats them"))
	}
}

// entries returns a list whose lines break only between entries.
func entries(all []string) []span {
	var spans []span
	for i, entry := range all {
		comma := ","
		if i == len(all)-1 {
			comma = ""
		}
		spans = append(spans, txt(" "), whole(txt(entry+comma)))
	}
	return spans
}

// said lists the attributes that the block of c sets itself.
func said(c planner.Change, left map[string]bool) []leaf {
	if c.Want == nil {
		return nil
	}
	all := leaves("", withChosen(c))
	all = append(all, leaves("", c.Want.Policy)...)
	slices.SortStableFunc(all, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
	return slices.DeleteFunc(all, func(l leaf) bool {
		return l.path == "name" || isPlace(c.Kind, l.path) || defaulted(l.path, left) || l.value.IsKnown() && l.value.IsNull() || emptyCollection(l)
	})
}

// withChosen returns the attributes of the block of c, with the addresses that vmctl chose.
func withChosen(c planner.Change) cty.Value {
	want := c.Want.Want
	for name, v := range c.Chosen() {
		all := want.AsValueMap()
		all[name] = v
		want = cty.ObjectVal(all)
	}
	return want
}

// isPlace reports whether an attribute is the place of a block among others, which the spec shows.
func isPlace(kind spec.Kind, path string) bool {
	a, known := spec.AttrAt(kind, path)
	return known && a.Derived && a.DigestOf == ""
}

func emptyCollection(l leaf) bool {
	v := l.value
	return !v.IsMarked() && v.IsKnown() && !v.IsNull() && v.CanIterateElements() && v.LengthInt() == 0
}

// defaulted reports whether a path, or one above it, has a default value.
func defaulted(path string, left map[string]bool) bool {
	for {
		if left[path] {
			return true
		}
		dot := strings.LastIndexByte(path, '.')
		if dot < 0 {
			return false
		}
		path = path[:dot]
	}
}

// settings lists the settings of the provider, and marks the defaults that the spec left to
// vmctl.
func settings(c planner.Change, blocks []spec.Provider) string {
	var parts []string
	block := cty.NilVal
	for _, b := range blocks {
		if b.Ref == c.Provider {
			block = b.Attrs
			if b.BuiltIn {
				parts = append(parts, "built in")
			}
		}
	}
	for _, l := range leaves("", c.Settings) {
		if l.value.IsKnown() && l.value.IsNull() {
			continue
		}
		part := l.path + " " + spec.FormatValue("provider", l.path, l.value)
		if block != cty.NilVal && block.Type().HasAttribute(l.path) && block.GetAttr(l.path).IsNull() {
			part += " is this user's default"
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
