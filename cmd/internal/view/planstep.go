package view

import (
	"fmt"
	"strconv"
	"strings"

	"vmctl/planner"
	"vmctl/providers"
)

// longList is the number of steps beyond which only --verbose lists them.
const longList = 60

func (p *page) steps(plan *planner.Plan, verbose bool) {
	if len(plan.Steps) == 0 {
		return
	}
	p.heading("Steps, in this order")
	if len(plan.Steps) > longList && !verbose {
		p.put(2, 4, txt(stepCounts(plan)+"; --verbose lists them"))
		return
	}
	var t stepWidths
	for _, s := range plan.Steps {
		t.see(s)
	}
	for _, s := range plan.Steps {
		p.step(s, t)
		if verbose {
			p.stepDetails(s)
		}
	}
}

// stepCounts counts steps by phase.
func stepCounts(plan *planner.Plan) string {
	n := map[providers.Phase]int{}
	for _, s := range plan.Steps {
		n[s.Phase]++
	}
	var parts []string
	for _, phase := range providers.Phases() {
		if n[phase] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[phase], phase))
		}
	}
	return plural(len(plan.Steps), "step") + ": " + strings.Join(parts, ", ")
}

type stepWidths struct{ id, phase, address, op int }

func (t *stepWidths) see(s planner.Step) {
	t.id = max(t.id, len(strconv.Itoa(s.ID)))
	t.phase = max(t.phase, len(s.Phase))
	t.address = max(t.address, Width(Text(s.Address.String())))
	t.op = max(t.op, Width(Text(s.Op)))
}

func (p *page) step(s planner.Step, t stepWidths) {
	id := fmt.Sprintf("%*d", t.id, s.ID)
	spans := []span{txt(id), txt(" "), txt(string(s.Phase)), txt(" "), whole(in(bold, s.Address.String())), txt(" "), txt(s.Op)}
	if !p.narrow() {
		spans = []span{
			whole(txt(id)), txt(" "), padded(txt(string(s.Phase)), t.phase+1),
			txt(" "), padded(in(bold, s.Address.String()), t.address+1),
			txt(" "), padded(txt(s.Op), t.op+1), txt(" "),
		}
	}
	if notes := stepNotes(s); len(notes) > 0 {
		spans = append(spans, txt(" "), in(dim, strings.Join(notes, ", ")))
	}
	if s.Risk != providers.NoRisk && s.Risk != "" {
		style := yellow
		if s.Risk == providers.DataLoss {
			style = red
		}
		spans = append(spans, in(dim, ","), txt(" "), in(style, strings.ReplaceAll(string(s.Risk), "_", " ")))
	}
	p.put(2, 2+t.id+1, spans...)
}

func stepNotes(s planner.Step) []string {
	var notes []string
	switch {
	case s.Record:
		notes = append(notes, "writes the record only")
	case s.Timeout > 0:
		notes = append(notes, "at most "+Limit(s.Timeout))
	default:
		notes = append(notes, "at once")
	}
	if len(s.After) > 0 {
		var after []string
		for _, id := range s.After {
			after = append(after, strconv.Itoa(id))
		}
		notes = append(notes, "after "+strings.Join(after, "+"))
	}
	if s.Class == providers.Diagnostic {
		notes = append(notes, "a failure only warns")
	}
	return notes
}

func (p *page) stepDetails(s planner.Step) {
	if s.Imports {
		p.put(8, 10, in(dim, "import"), txt("  it bears no mark yet"))
	}
	if s.Args != nil {
		for _, arg := range s.Args.Words() {
			p.put(8, 10, whole(in(dim, arg[0])), txt("  "+arg[1]))
		}
	}
	for _, c := range s.Frees {
		p.put(8, 10, in(dim, "frees"), txt("  "+c.String()))
	}
	for _, c := range s.Takes {
		p.put(8, 10, in(dim, "takes"), txt("  "+c.String()))
	}
	for _, leaves := range s.Leaves {
		p.put(8, 10, in(dim, "may leave"), txt("  "+leaves))
	}
}

// wordsOf returns the words for a step: its own, or its operation.
func wordsOf(s planner.Step) providers.Words {
	if s.Words == (providers.Words{}) {
		return providers.Words{Doing: s.Op, Done: s.Op + " done"}
	}
	return s.Words
}
