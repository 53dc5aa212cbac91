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
	return slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool {
		this := said{summary: d.Summary, detail: d.Detail}
		if d.Subject != nil {
			this.subject = *d.Subject
		}
		defer func() { seen[this] = true }()
		return seen[this]
	})
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
