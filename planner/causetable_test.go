package planner_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
)

// The page about what is blocked is written from the table of causes.
func TestThePageOfCauses(t *testing.T) {
	var b strings.Builder
	b.WriteString("# What a plan blocks\n\n" +
		"Every valid edit has a plan. Each change is carried out, or blocked for one of these causes, which\n" +
		"`vmctl plan --json` names. The rest of the plan stands: the plan ends with the `--exclude` line for it.\n\n" +
		"| Cause | What it means |\n|---|---|\n")
	for _, row := range planner.Causes() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", row.Cause, row.Meaning)
	}
	const path = "../docs/blocked.md"
	if os.Getenv("UPDATE") == "1" {
		if err := os.MkdirAll("../docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(page)); diff != "" {
		t.Errorf("%s (-want +got), UPDATE=1 writes it:\n%s", path, diff)
	}
}

// The search demands that every block has a cause of the table.
func TestCausesAreNamedOnce(t *testing.T) {
	known := map[planner.Cause]bool{}
	for _, row := range planner.Causes() {
		if known[row.Cause] || row.Meaning == "" {
			t.Errorf("cause %q stands twice, or means nothing", row.Cause)
		}
		known[row.Cause] = true
	}
	if known[""] {
		t.Error("a cause has no name")
	}
}
