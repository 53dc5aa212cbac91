package graph

import (
	"fmt"
	"strings"

	"vmctl/cmd/internal/view"
)

// DOT returns the graph for Graphviz.
func (g Graph) DOT() string {
	var b strings.Builder
	b.WriteString("digraph vmctl {\n")
	fmt.Fprintf(&b, "  label=%s\n", dotText(g.Title))
	b.WriteString("  labelloc=t\n  rankdir=LR\n  node [shape=box, style=\"rounded,filled\", fontname=\"monospace\"]\n")
	for _, n := range g.Nodes {
		label := []string{n.Label}
		if n.Note != "" {
			label = append(label, n.Note)
		}
		c := colorsOf(n.Kind)
		fmt.Fprintf(&b, "  %s [label=%s, fillcolor=%q, color=%q]\n", dotText(n.ID), dotText(label...), c.fill, c.line)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  %s -> %s", dotText(g.Nodes[e.From].ID), dotText(g.Nodes[e.To].ID))
		if e.Faint {
			b.WriteString(" [style=dashed, color=gray]")
		}
		b.WriteByte('\n')
	}
	b.WriteString("}\n")
	return b.String()
}

// dotText quotes lines. It doubles backslashes, which Graphviz reads as its own in labels.
func dotText(lines ...string) string {
	var safe []string
	for _, line := range lines {
		line = strings.ReplaceAll(view.Text(line), `\`, `\\`)
		safe = append(safe, strings.ReplaceAll(line, `"`, `\"`))
	}
	return `"` + strings.Join(safe, `\n`) + `"`
}
