package view

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// ProblemDocument describes why a command failed, and what to do next.
type ProblemDocument struct {
	Code    string   `json:"code"`    // stable, snake_case
	Message string   `json:"message"` // what was attempted, and what stood in its way
	Seen    []string `json:"seen"`    // what was observed
	Next    []string `json:"next"`    // what to type or do next
}

// FailureDocument is the JSON document of a command that failed.
type FailureDocument struct {
	FormatVersion string               `json:"format_version"`
	Error         ProblemDocument      `json:"error"`
	Diagnostics   []DiagnosticDocument `json:"diagnostics"`
}

// FailureJSON returns the document of a problem with its diagnostics.
func FailureJSON(p ProblemDocument, diags hcl.Diagnostics) FailureDocument {
	p.Seen, p.Next = list(p.Seen), list(p.Next)
	return FailureDocument{FormatVersion: FormatVersion, Error: p, Diagnostics: DiagnosticsJSON(diags)}
}

// Failed shows a problem.
func Failed(s Screen, problem ProblemDocument) {
	p := &page{screen: s}
	lines := strings.Split(problem.Message, "\n")
	p.put(0, 2, in(red, "Error:"), txt(" "+lines[0]))
	for _, line := range lines[1:] {
		p.put(2, 4, txt(line))
	}
	p.seenNext(problem.Seen, problem.Next, 2)
	p.flush()
}

func (p *page) seenNext(seen, next []string, indent int) {
	for _, line := range seen {
		p.put(indent, indent+2, in(dim, "seen:"), txt(" "+line))
	}
	for _, line := range next {
		p.put(indent, indent+2, in(bold, "next:"), txt(" "+line))
	}
}

// Warning shows one warning.
func Warning(s Screen, text string) {
	p := &page{screen: s}
	p.put(0, 2, in(yellow, "Warning:"), txt(" "+text))
	p.flush()
}

// Note shows one remark.
func Note(s Screen, text string) {
	p := &page{screen: s}
	p.put(0, 2, txt(text))
	p.flush()
}

// Heading shows a title after an empty line.
func Heading(s Screen, title string) {
	p := &page{screen: s}
	p.heading(title)
	p.flush()
}

// maxDiagnostics is the number of diagnostics that people are shown: nobody reads more at once.
const maxDiagnostics = 20

// Diagnostics shows diagnostics with the source lines that they point to, errors before warnings.
// It shows maxDiagnostics of them, and counts the others.
func Diagnostics(s Screen, files map[string]*hcl.File, diags hcl.Diagnostics) {
	if len(diags) == 0 {
		return
	}
	diags = slices.Clone(diags)
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int { return cmp.Compare(a.Severity, b.Severity) })
	more := len(diags) - min(len(diags), maxDiagnostics)
	diags = diags[:len(diags)-more]
	var raw bytes.Buffer
	w := hcl.NewDiagnosticTextWriter(&raw, files, uint(max(s.Columns, 0)), false) //nolint:gosec // not negative
	if err := w.WriteDiagnostics(diags); err != nil {
		raw.Reset()
		raw.WriteString(diags.Error() + "\n")
	}
	p := &page{screen: s}
	for line := range strings.Lines(Lines(raw.String())) {
		p.text.WriteString(severityColor(line, s.Color))
	}
	if more > 0 {
		p.put(0, 2, txt("and "+grouped(more)+" more; --json lists all"))
	}
	p.flush()
}

// grouped writes a number that is not negative with commas between thousands.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func severityColor(line string, color bool) string {
	if !color {
		return line
	}
	for prefix, style := range map[string]style{"Error:": red, "Warning:": yellow} {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return word{spans: []span{{style: style, text: prefix}}}.render(color) + rest
		}
	}
	return line
}

// DiagnosticDocument is a diagnostic as JSON.
type DiagnosticDocument struct {
	Severity string         `json:"severity"` // error | warning
	Summary  string         `json:"summary"`
	Detail   string         `json:"detail"`
	Range    *RangeDocument `json:"range,omitempty"`
}

// RangeDocument is a place in a file, with lines and columns from 1.
type RangeDocument struct {
	File  string           `json:"file"`
	Start PositionDocument `json:"start"`
	End   PositionDocument `json:"end"`
}

// PositionDocument is a line and a column, from 1.
type PositionDocument struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// DiagnosticsJSON returns diagnostics as JSON, never null.
func DiagnosticsJSON(diags hcl.Diagnostics) []DiagnosticDocument {
	all := []DiagnosticDocument{}
	for _, d := range diags {
		doc := DiagnosticDocument{Severity: "error", Summary: d.Summary, Detail: d.Detail}
		if d.Severity == hcl.DiagWarning {
			doc.Severity = "warning"
		}
		if d.Subject != nil {
			doc.Range = &RangeDocument{
				File:  d.Subject.Filename,
				Start: PositionDocument{Line: d.Subject.Start.Line, Column: d.Subject.Start.Column},
				End:   PositionDocument{Line: d.Subject.End.Line, Column: d.Subject.End.Column},
			}
		}
		all = append(all, doc)
	}
	return all
}
