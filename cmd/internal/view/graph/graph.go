// Package graph draws directed graphs without cycles: as text for Graphviz and
// for Mermaid, and as an SVG that needs neither. The same graph gives the same
// bytes.
//
// Labels may come from anywhere: each format has them escaped, and no control
// character gets into any of them.
package graph

import (
	"slices"

	"vmctl/cmd/internal/view"
)

// Graph is a directed graph to draw. Its edges make no cycle.
type Graph struct {
	Title string // one line, above the drawing
	Nodes []Node
	Edges []Edge
}

// Node is one box.
type Node struct {
	ID    string `json:"id"`   // unique in its graph
	Kind  string `json:"kind"` // gives it its color: vm, disk, provider, a step's phase
	Label string `json:"label"`
	Note  string `json:"note,omitempty"` // a second line, smaller; "": none
	Last  bool   `json:"-"`              // it stands in the last layer, unless an edge leads from it
}

// Edge leads from one node to another, both by their index. A faint edge is of a kind that
// nearly every node has.
type Edge struct {
	From, To int
	Kind     string // uses, provider, after
	Faint    bool
}

// Document is a graph as JSON.
type Document struct {
	FormatVersion string         `json:"format_version"`
	Nodes         []Node         `json:"nodes"`
	Edges         []EdgeDocument `json:"edges"`
}

// EdgeDocument is an edge as JSON: it leads from one node to another, both by ID.
type EdgeDocument struct {
	From string `json:"from"`
	To   string `json:"to"`
	Kind string `json:"kind"`
}

// JSON returns the document of a graph.
func (g Graph) JSON() Document {
	d := Document{FormatVersion: view.FormatVersion, Nodes: slices.Clone(g.Nodes), Edges: []EdgeDocument{}}
	if d.Nodes == nil {
		d.Nodes = []Node{}
	}
	for _, e := range g.Edges {
		d.Edges = append(d.Edges, EdgeDocument{From: g.Nodes[e.From].ID, To: g.Nodes[e.To].ID, Kind: e.Kind})
	}
	return d
}
