package graph

import (
	"fmt"
	"strings"

	"vmctl/cmd/internal/view"
)

// Mermaid returns the graph for Mermaid, for Markdown files on GitHub and GitLab.
func (g Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, n := range g.Nodes {
		label := mermaidText(n.Label)
		if n.Note != "" {
			label += "<br/>" + mermaidText(n.Note)
		}
		fmt.Fprintf(&b, "  n%d[\"%s\"]\n", i, label)
	}
	for _, e := range g.Edges {
		arrow := "-->"
		if e.Faint {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  n%d %s n%d\n", e.From, arrow, e.To)
	}
	for i, n := range g.Nodes {
		c := colorsOf(n.Kind)
		fmt.Fprintf(&b, "  style n%d fill:%s,stroke:%s,color:%s\n", i, c.fill, c.line, c.text)
	}
	return b.String()
}

// mermaidText escapes text: characters with a meaning in Mermaid, Markdown or HTML become
// their numbers.
func mermaidText(text string) string {
	var b strings.Builder
	for _, r := range view.Text(text) {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" .-_,:()/", r) || r >= 0x80
		if !plain {
			fmt.Fprintf(&b, "#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
