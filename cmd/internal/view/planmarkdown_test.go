package view_test

import (
	"strings"
	"testing"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
)

// The first line of a plan as Markdown counts whatever a plan can have.
func TestMarkdownCounts(t *testing.T) {
	p := planner.Plan{Summary: planner.Summary{Blocked: 1, Refused: 2, Unknown: 3, Retained: 4, Skipped: 5, Deferred: 6, Inapplicable: 7}}
	line, _, _ := strings.Cut(view.PlanMarkdown(view.PlanJSON(&p, view.OwnFlags{}), view.MarkdownOptions{}), "\n")
	for _, want := range []string{"1 blocked", "2 refused", "3 unknown", "4 retained", "5 skipped", "6 deferred", "7 not applicable"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q lacks %q", line, want)
		}
	}
}
