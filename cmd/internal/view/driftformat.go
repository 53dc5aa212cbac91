package view

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// junitSuites is a report that CI systems read: one case for each difference.
type junitSuites struct {
	XMLName xml.Name   `xml:"testsuites"`
	Suite   junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
}

func driftJUnit(s Screen, doc DriftDocument) {
	suite := junitSuite{Name: "vmctl drift " + doc.Project, Failures: len(doc.Drift), Errors: len(doc.Unread), Skipped: len(doc.Ignored)}
	add := func(e DriftEntry) *junitCase {
		name := e.Kind
		if e.Path != "" {
			name += " " + e.Path
		}
		suite.Cases = append(suite.Cases, junitCase{Class: e.Address, Name: name})
		return &suite.Cases[len(suite.Cases)-1]
	}
	for _, e := range doc.Drift {
		add(e).Failure = &junitMessage{e.Evidence}
	}
	for _, e := range doc.Unread {
		add(e).Error = &junitMessage{e.Evidence}
	}
	for _, e := range doc.Ignored {
		add(e).Skipped = &junitMessage{e.Ignored.words()}
	}
	if len(suite.Cases) == 0 {
		suite.Cases = append(suite.Cases, junitCase{Class: doc.Project, Name: "no drift"})
	}
	suite.Tests = len(suite.Cases)
	text, err := xml.MarshalIndent(junitSuites{Suite: suite}, "", "  ")
	if err != nil {
		panic("a report of texts and numbers: " + err.Error())
	}
	raw(s, xml.Header+string(text)+"\n")
}

// driftMetrics writes metrics in Prometheus' text format. An address with several differences of a
// kind has one sample, with their number.
func driftMetrics(s Screen, doc DriftDocument) {
	var b strings.Builder
	sample := func(name, labels string, value int) {
		fmt.Fprintf(&b, "%s{project=%s%s} %d\n", name, label(doc.Project), labels, value)
	}
	head := func(name, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name) }
	head("vmctl_drift_resources", "Differences between a record and the world, by address and kind.")
	counts := map[string]int{}
	var order []string
	for _, e := range doc.Drift {
		labels := ",address=" + label(e.Address) + ",kind=" + label(e.Kind)
		if counts[labels] == 0 {
			order = append(order, labels)
		}
		counts[labels]++
	}
	for _, labels := range order {
		sample("vmctl_drift_resources", labels, counts[labels])
	}
	for _, total := range []struct {
		name, help string
		value      int
	}{
		{"vmctl_drift_total", "Differences that are not ignored.", len(doc.Drift)},
		{"vmctl_drift_unread", "Resources that could not be read.", len(doc.Unread)},
		{"vmctl_drift_ignored", "Differences that the ignore file accepts.", len(doc.Ignored)},
		{"vmctl_drift_ignore_expired", "Entries of the ignore file that have expired.", len(doc.Expired)},
	} {
		head(total.name, total.help)
		sample(total.name, "", total.value)
	}
	raw(s, b.String())
}

// label writes the value of a label as Prometheus reads it.
func label(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

func driftMarkdown(s Screen, doc DriftDocument) {
	var b strings.Builder
	head := "none"
	if len(doc.Drift) > 0 {
		head = plural(len(doc.Drift), "difference")
	}
	fmt.Fprintf(&b, "### Drift of %s: %s%s\n", cell(doc.Project), head, driftRest(doc))
	table := func(title string, all []DriftEntry) {
		if len(all) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n**%s**\n\n| Resource | Kind | Attribute | Evidence |\n|---|---|---|---|\n", title)
		for _, e := range all {
			text := e.Evidence
			if e.Ignored != nil {
				text += "; " + e.Ignored.words()
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", cell(e.Address), e.Kind, cell(e.Path), cell(text))
		}
	}
	table("Drift", doc.Drift)
	table("Not read", doc.Unread)
	table("Ignored", doc.Ignored)
	if len(doc.Expired) > 0 {
		b.WriteString("\n**Expired entries of the ignore file**\n\n")
		for _, r := range doc.Expired {
			fmt.Fprintf(&b, "- line %d: `%s`: %s\n", r.Line, cell(r.subject()), cell(r.words()))
		}
	}
	raw(s, b.String())
}

// cell writes a text into a cell of a table in Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "`", "'").Replace(text)
}

// raw writes a report for programs, its lines as they are.
func raw(s Screen, text string) {
	p := &page{screen: s}
	p.text.WriteString(Lines(text))
	p.flush()
}
