package view_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/providers"
)

// numbered returns n lines, the given ones in place of their own.
func numbered(n int, other map[int]string) string {
	var b strings.Builder
	for i := range n {
		line, is := other[i]
		if !is {
			line = fmt.Sprintf("line %d", i)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// edited returns the plan of one edit of a VM.
func edited(e providers.Edit) *planner.Plan {
	c := change("web", providers.Update, "")
	c.Edits = []providers.Edit{e}
	return &planner.Plan{Project: project(), Changes: []planner.Change{c}, Summary: count(c)}
}

// A text of 300 lines is shown by the lines that changed, with their surroundings.
func TestPlanShowsLongTextsLineByLine(t *testing.T) {
	e := providers.Edit{
		Path: "cloud_init.user_data", Before: str(numbered(300, nil)),
		After:   str(numbered(300, map[int]string{100: "  - other", 250: "\tx\x1b[2J"})),
		Verdict: providers.Verdict{Applies: providers.Replace},
	}
	got := on(0, func(s view.Screen) { view.Plan(s, edited(e), options()) })
	want := `
      cloud_init.user_data  300 lines → 300 lines, 2 added, 2 removed (applies: replace)
        @ line 99
          line 98
          line 99
        - line 100
        +   - other
          line 101
          line 102
        @ line 249
          line 248
          line 249
        - line 250
        +     x\x1b[2J
          line 251
          line 252
`
	if !strings.Contains(got, want) {
		t.Errorf("the plan lacks\n%s\nit is\n%s", want, got)
	}
	doc := view.PlanMarkdown(view.PlanJSON(edited(e), view.OwnFlags{}), view.MarkdownOptions{})
	for _, want := range []string{"| `cloud_init.user_data` | 300 lines | 300 lines | replace |", "```diff\n@@ line 99\n  line 98\n", "\n- line 100\n+   - other\n", `+     x\x1b[2J`} {
		if !strings.Contains(doc, want) {
			t.Errorf("the Markdown lacks %q:\n%s", want, doc)
		}
	}
}

func TestPlanLeavesLongDifferencesToVerbose(t *testing.T) {
	e := providers.Edit{Path: "cloud_init.user_data", Before: nothing(), After: str(numbered(300, nil))}
	o := options()
	short := on(80, func(s view.Screen) { view.Plan(s, edited(e), o) })
	if want := "none → 300 lines, 300 added, 0 removed"; !strings.Contains(short, want) {
		t.Errorf("lacks %q:\n%s", want, short)
	}
	if want := "+ line 39\n        and 260 lines more; --verbose shows them\n"; !strings.Contains(short, want) {
		t.Errorf("lacks %q:\n%s", want, short)
	}
	o.Verbose = true
	if long := on(80, func(s view.Screen) { view.Plan(s, edited(e), o) }); !strings.Contains(long, "+ line 299\n") {
		t.Errorf("--verbose lacks the last line:\n%s", long)
	}
}

// The lines of both texts can be read out of a difference.
func TestDifferencesHoldBothTexts(t *testing.T) {
	for _, pair := range [][2]string{{"a\nb\nc\n", "b\nc\nd\n"}, {"a\nb\n", "a\nb"}, {"x\ny\n", ""}, {"", "x\ny\n"}, {"a\nb\na\nb\n", "b\na\n"}} {
		e := providers.Edit{Path: "cloud_init.user_data", Before: str(pair[0]), After: str(pair[1])}
		var before, after string
		for line := range strings.Lines(on(0, func(s view.Screen) { view.Plan(s, edited(e), options()) })) {
			text, is := strings.CutPrefix(line, "        ")
			if !is {
				continue
			}
			line := strings.ReplaceAll(strings.TrimPrefix(text[1:], " "), " (no line end)\n", "")
			switch text[0] {
			case '-':
				before += line
			case '+':
				after += line
			case ' ':
				before, after = before+line, after+line
			}
		}
		if diff := cmp.Diff(pair, [2]string{before, after}); diff != "" {
			t.Errorf("the texts (-want +shown):\n%s", diff)
		}
	}
}
