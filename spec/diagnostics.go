package spec

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// mistake returns a diagnostic about the text at rng.
func mistake(rng hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  summary,
		Detail:   fmt.Sprintf(format, args...),
		Subject:  &rng,
	}
}

// The most diagnostics that are worth reading, and that a terminal can show in
// a sensible time.
const (
	maxDiagnostics       = 500
	maxSyntaxDiagnostics = 20 // of one file
)

// truncate cuts off the diagnostics beyond limit, and says how many there were.
func truncate(limit int, diags hcl.Diagnostics) hcl.Diagnostics {
	if len(diags) <= limit {
		return diags
	}
	return append(diags[:limit:limit], &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  "More mistakes",
		Detail:   fmt.Sprintf("There are %d more. Correct these first.", len(diags)-limit),
		Subject:  diags[limit].Subject,
	})
}

// sortUnique sorts diagnostics by place and drops repetitions: a mistake that every
// instance of a block shares is one.
func sortUnique(diags hcl.Diagnostics) hcl.Diagnostics {
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int {
		return compareRanges(a.Subject, b.Subject)
	})
	type said struct {
		subject         hcl.Range
		summary, detail string
	}
	seen := map[said]bool{}
	return truncate(maxDiagnostics, slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool {
		this := said{summary: d.Summary, detail: d.Detail}
		if d.Subject != nil {
			this.subject = *d.Subject
		}
		defer func() { seen[this] = true }()
		return seen[this]
	}))
}

func compareRanges(a, b *hcl.Range) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(a.Filename, b.Filename), cmp.Compare(a.Start.Byte, b.Start.Byte), cmp.Compare(a.End.Byte, b.End.Byte))
}

// formatRange writes a range for people: "main.vmctl.hcl:3".
func formatRange(rng hcl.Range) string { return fmt.Sprintf("%s:%d", rng.Filename, rng.Start.Line) }

// quoteName writes a name for the beginning of a sentence.
func quoteName(n nodeName) string { return "`" + n.String() + "`" }
