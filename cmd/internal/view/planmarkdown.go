package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// MarkdownOptions holds what a plan is shown with as Markdown.
type MarkdownOptions struct {
	MaxBytes int    // 0: any size
	Rest     string // the command that shows what was left out; "": none
}

// PlanMarkdown returns a plan for a comment on a pull request: its risks first, then its changes, its
// outputs and its steps. With a limit it leaves out the steps, then changes in the middle.
func PlanMarkdown(d PlanDocument, o MarkdownOptions) string {
	top := markdownTop(d)
	var changes []string
	for _, c := range d.Changes {
		if text := markdownChange(c); text != "" {
			changes = append(changes, text)
		}
	}
	outputs, steps := markdownOutputs(d), markdownSteps(d)
	whole := top + strings.Join(changes, "") + outputs + steps
	if o.MaxBytes <= 0 || len(whole) <= o.MaxBytes {
		return whole
	}
	left := func(n int, what string) string {
		text := fmt.Sprintf("\n… %s left out", plural(n, what))
		if o.Rest != "" {
			text += ": `" + o.Rest + "` shows all"
		}
		return text + ".\n"
	}
	for drop := 0; drop <= len(changes); drop++ {
		text := left(len(d.Steps), "step")
		if drop > 0 {
			text = left(drop, "change") + text
		}
		first := (len(changes) - drop + 1) / 2
		text = top + strings.Join(changes[:first], "") + text + strings.Join(changes[first+drop:], "") + outputs
		if len(text) <= o.MaxBytes {
			return text
		}
	}
	return cutBytes(top, o.MaxBytes)
}

// cutBytes returns the first lines of a text that fit.
func cutBytes(text string, most int) string {
	const more = "…\n"
	fits := ""
	for line := range strings.Lines(text) {
		if len(fits)+len(line)+len(more) > most {
			return fits + more
		}
		fits += line
	}
	return fits
}

// markdownTop returns the title, and what a reader must not overlook.
func markdownTop(d PlanDocument) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### Plan for %s: %s\n", cell(d.Project), strings.TrimSuffix(counts(summaryOf(d), d.Summary["tidy"]), "."))
	if len(d.Targets) > 0 {
		fmt.Fprintf(&b, "\n**Limited** to %s: whatever else the files and the state hold is not in this plan.\n", codes(d.Targets))
	}
	for _, text := range d.Warnings {
		fmt.Fprintf(&b, "\n**Warning:** %s\n", cell(Text(text)))
	}
	risks := map[string][]string{}
	for _, s := range d.Steps {
		if s.Risk != string(providers.NoRisk) && !slices.Contains(risks[s.Risk], s.Address) {
			risks[s.Risk] = append(risks[s.Risk], s.Address)
		}
	}
	var lines []string
	for _, c := range d.Changes {
		if c.Blocked != nil {
			lines = append(lines, fmt.Sprintf("- **%s** %s: %s", c.Blocked.Kind, code(c.Address), cell(Text(c.Blocked.Reason))))
		}
	}
	for _, risk := range []providers.Risk{providers.DataLoss, providers.Downtime} {
		if all := risks[string(risk)]; len(all) > 0 {
			lines = append(lines, "- **"+strings.ReplaceAll(string(risk), "_", " ")+"** "+codes(all))
		}
	}
	if len(lines) > 0 {
		b.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	}
	return b.String() + markdownChecks(d) + markdownReach(d)
}

// summaryOf returns the summary that a document counts.
func summaryOf(d PlanDocument) (s planner.Summary) {
	s.Actions = map[providers.Action]int{}
	for _, l := range looks {
		s.Actions[l.action] = d.Summary[string(l.action)]
	}
	s.Blocked, s.Refused, s.Unknown, s.Retained, s.Skipped, s.Deferred = d.Summary["blocked"], d.Summary["refused"], d.Summary["unknown"], d.Summary["retained"], d.Summary["skipped"], d.Summary["deferred"]
	s.Inapplicable = d.Summary["not_applicable"]
	return s
}

// markdownChange returns the part of one change; "": it has nothing to show.
func markdownChange(c ChangeDocument) string {
	if c.Action == string(providers.NoOp) && len(c.Edits)+len(c.Policies)+len(c.Warnings) == 0 && c.Mark == nil && c.Keys == nil && c.Blocked == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n#### %s %s\n", code(lookOf(providers.Action(c.Action)).ascii+" "+c.Address), c.Action)
	if c.Reason != "" {
		fmt.Fprintf(&b, "\n%s\n", cell(Text(c.Reason)))
	}
	for _, text := range c.Warnings {
		fmt.Fprintf(&b, "\n**warning:** %s\n", cell(Text(text)))
	}
	kind := kindOf(c.Address)
	var rows []string
	var texts []EditDocument
	add := func(path, before, after, applies string) {
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", code(path), cell(Text(before)), cell(Text(after)), cell(Text(applies))))
	}
	for _, e := range slices.Concat(c.Edits, c.Policies) {
		applies := e.Applies
		if e.Reason != "" {
			applies += "; " + e.Reason
		}
		before, after := valueOf(e.Before, false), valueOf(e.After, e.AfterUnknown)
		if was, is, long := longTexts(providers.Edit{Before: before, After: after}); long {
			texts = append(texts, e)
			add(e.Path, lineCount(was), lineCount(is), applies)
			continue
		}
		add(e.Path, formatPlain(kind, e.Path, before), formatPlain(kind, e.Path, after), applies)
	}
	if c.Mark != nil {
		add("mark", c.Mark.Before, c.Mark.After, c.Mark.Applies+"; "+c.Mark.Reason)
	}
	if c.Keys != nil {
		add("ssh.keys", "those it has", "new ones", c.Keys.Applies+"; "+c.Keys.Reason)
	}
	if c.Action == string(providers.Create) {
		for _, said := range saidIn(kind, c) {
			add(said.path, "none", formatPlain(kind, said.path, said.value), "")
		}
	}
	if len(rows) > 0 {
		b.WriteString("\n| Attribute | Before | After | Applies |\n|---|---|---|---|\n" + strings.Join(rows, "\n") + "\n")
	}
	for _, e := range texts {
		b.WriteString(markdownDiff(e))
	}
	return b.String()
}

// saidIn lists the attributes and policies of a new object that differ from their defaults.
func saidIn(kind spec.Kind, c ChangeDocument) []leaf {
	all := append(leaves("", valueOf(c.After, false)), leaves("", valueOf(c.PolicyAfter, false))...)
	slices.SortStableFunc(all, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
	return slices.DeleteFunc(all, func(l leaf) bool {
		a, known := spec.AttrAt(kind, l.path)
		empty := l.value.IsNull() || l.value.CanIterateElements() && l.value.LengthInt() == 0
		return empty || isPlace(kind, l.path) || known && a.Default != cty.NilVal && spec.FormatValue(kind, l.path, a.Default) == spec.FormatValue(kind, l.path, l.value)
	})
}

func markdownDiff(e EditDocument) string {
	before, after, _ := longTexts(providers.Edit{Before: valueOf(e.Before, false), After: valueOf(e.After, false)})
	shown, _, _ := diffLines(before, after)
	var body strings.Builder
	fence := "```"
	for _, c := range shown {
		sign := string(c.sign)
		if c.sign == '@' {
			sign = "@@"
		}
		body.WriteString(sign + " " + Text(strings.ReplaceAll(c.text, "\t", "    ")) + "\n")
		for strings.Contains(c.text, fence) {
			fence += "`"
		}
	}
	return "\n" + code(e.Path) + ":\n\n" + fence + "diff\n" + body.String() + fence + "\n"
}

func markdownOutputs(d PlanDocument) string {
	var rows []string
	for _, o := range d.Outputs {
		if o.changes() {
			after := plainText(o.After)
			if o.AfterUnknown {
				after = "(known after apply)"
			}
			rows = append(rows, fmt.Sprintf("| %s | %s | %s |", code(o.Name), cell(Text(plainText(o.Before))), cell(Text(after))))
		}
	}
	if len(rows) == 0 {
		return ""
	}
	return "\n**Outputs**\n\n| Output | Before | After |\n|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
}

func markdownSteps(d PlanDocument) string {
	if len(d.Steps) == 0 {
		return "\nApply would carry out no step.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n<details><summary>%s, in this order</summary>\n\n", plural(len(d.Steps), "step"))
	for _, s := range d.Steps {
		fmt.Fprintf(&b, "- %d %s %s %s\n", s.ID, s.Phase, code(s.Address), cell(Text(s.Op)))
	}
	return b.String() + "\n</details>\n"
}

// code writes a text as code, inside a table too.
func code(text string) string {
	return "`" + strings.NewReplacer("|", `\|`, "`", "'").Replace(Text(text)) + "`"
}

func codes(all []string) string {
	var parts []string
	for _, text := range all {
		parts = append(parts, code(text))
	}
	return strings.Join(parts, ", ")
}

func kindOf(address string) spec.Kind {
	kind, _, _ := strings.Cut(address, ".")
	return spec.Kind(kind)
}

// formatPlain writes a value of a document as a plan does.
func formatPlain(kind spec.Kind, path string, v cty.Value) string {
	if v != cty.NilVal && v.IsKnown() && !v.IsNull() && v.Type() == cty.String && v.AsString() == "(sensitive)" {
		return "(sensitive)"
	}
	return spec.FormatValue(kind, path, v)
}

// valueOf returns the value that Plain wrote, with objects for maps and tuples for lists.
func valueOf(v any, unknown bool) cty.Value {
	if unknown && v == nil {
		return cty.DynamicVal
	}
	switch v := v.(type) {
	case string:
		return cty.StringVal(v)
	case bool:
		return cty.BoolVal(v)
	case json.Number:
		if n, err := cty.ParseNumberVal(string(v)); err == nil {
			return n
		}
	case map[string]any:
		all := map[string]cty.Value{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all[name] = valueOf(v[name], false)
		}
		return cty.ObjectVal(all)
	case []any:
		var all []cty.Value
		for _, element := range v {
			all = append(all, valueOf(element, false))
		}
		return cty.TupleVal(all)
	}
	return cty.NullVal(cty.DynamicPseudoType)
}

// Markdown writes a text in Markdown, its lines as they are.
func Markdown(s Screen, text string) { raw(s, text) }
