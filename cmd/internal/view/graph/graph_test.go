package graph_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/cmd/internal/view/graph"
)

// golden compares got with testdata/name, which UPDATE=1 rewrites.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// hostile is text with the special characters of each format.
const hostile = "vm.web[\"<b>&'`#35;\\N\x1b[31m\u202e]]>\n--> x\"]"

func small() graph.Graph {
	return graph.Graph{
		Title: "demo: 4 resources",
		Nodes: []graph.Node{
			{ID: "disk.cache", Kind: "disk", Label: "disk.cache", Note: "10GiB"},
			{ID: "vm.db", Kind: "vm", Label: "vm.db"},
			{ID: "vm.dev", Kind: "vm", Label: "vm.dev"},
			{ID: hostile, Kind: "vm", Label: hostile, Note: hostile},
			{ID: "provider.libvirt.default", Kind: "provider", Label: "provider.libvirt.default", Last: true},
		},
		Edges: []graph.Edge{
			{From: 0, To: 4, Kind: "provider", Faint: true},
			{From: 1, To: 4, Kind: "provider", Faint: true},
			{From: 2, To: 0, Kind: "uses"},
			{From: 2, To: 1, Kind: "uses"},
			{From: 2, To: 4, Kind: "provider", Faint: true},
			{From: 3, To: 2, Kind: "uses"},
			{From: 3, To: 4, Kind: "provider", Faint: true},
		},
	}
}

func TestFormats(t *testing.T) {
	g := small()
	golden(t, "small.dot", g.DOT())
	golden(t, "small.mmd", g.Mermaid())
	golden(t, "small.svg", g.SVG())
	document, err := json.MarshalIndent(g.JSON(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "small.json", string(document)+"\n")
	golden(t, "empty.dot", graph.Graph{Title: "demo: nothing"}.DOT())
	golden(t, "empty.mmd", graph.Graph{Title: "demo: nothing"}.Mermaid())
	golden(t, "empty.svg", graph.Graph{Title: "demo: nothing"}.SVG())
}

// names generates texts as a for_each takes for its keys.
func names() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[a-z]{1,60}`), rapid.String(), rapid.SampledFrom([]string{hostile, "]]>", "</svg>", "\"", "\\", "end", "日本語日本語日本語日本語日本語日本語日本語"}))
}

func graphs() *rapid.Generator[graph.Graph] {
	return rapid.Custom(func(t *rapid.T) graph.Graph {
		g := graph.Graph{Title: names().Draw(t, "title")}
		n := rapid.IntRange(0, 50).Draw(t, "nodes")
		for i := range n {
			g.Nodes = append(g.Nodes, graph.Node{
				ID: fmt.Sprint(i), Kind: rapid.SampledFrom([]string{"vm", "disk", "provider", "make", "x"}).Draw(t, "kind"),
				Label: names().Draw(t, "label"), Last: rapid.Bool().Draw(t, "last"),
			})
			if rapid.Bool().Draw(t, "noted") {
				g.Nodes[i].Note = names().Draw(t, "note")
			}
		}
		if n > 1 {
			for range rapid.IntRange(0, 80).Draw(t, "edges") {
				from := rapid.IntRange(0, n-2).Draw(t, "from")
				to := rapid.IntRange(from+1, n-1).Draw(t, "to")
				g.Edges = append(g.Edges, graph.Edge{From: from, To: to, Kind: "uses", Faint: rapid.Bool().Draw(t, "faint")})
			}
		}
		return g
	})
}

func TestNothingOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graphs().Draw(t, "graph")
		boxes, lines := g.Boxes()
		for i, a := range boxes {
			for j, b := range boxes[:i] {
				if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Fatalf("the boxes of %q and %q overlap: %v, %v", g.Nodes[i].Label, g.Nodes[j].Label, a, b)
				}
			}
		}
		for _, l := range lines {
			for i, b := range boxes {
				if i == l.From || i == l.To {
					continue
				}
				for _, p := range l.Points {
					if p[0] > b.X && p[0] < b.X+b.W && p[1] > b.Y && p[1] < b.Y+b.H {
						t.Fatalf("a line from %d to %d crosses the box of %q", l.From, l.To, g.Nodes[i].Label)
					}
				}
			}
		}
	})
}

// With any names, each format stays valid and has no character that a terminal or a browser
// obeys.
func TestFormatsHoldAnyName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graphs().Draw(t, "graph")
		svg := g.SVG()
		for format, draw := range map[string]func() string{"svg": g.SVG, "dot": g.DOT, "mermaid": g.Mermaid} {
			if first, again := draw(), draw(); first != again {
				t.Fatalf("%s: the same graph gives other bytes", format)
			}
		}
		elements := elementsOf(t, svg)
		if want := len(g.Nodes); elements["g"] != want {
			t.Fatalf("%d boxes for %d nodes:\n%s", elements["g"], want, svg)
		}
		for name := range elements {
			if !strings.Contains(" svg defs marker path rect text g title ", " "+name+" ") {
				t.Fatalf("an element %q:\n%s", name, svg)
			}
		}
		for _, text := range []string{svg, g.DOT(), g.Mermaid()} {
			if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r == 0x7f || r == '\u202e') }) {
				t.Fatalf("a control character in %q", text)
			}
		}
		if lines, want := strings.Count(g.Mermaid(), "\n"), 1+2*len(g.Nodes)+len(g.Edges); lines != want {
			t.Fatalf("%d lines, want %d:\n%s", lines, want, g.Mermaid())
		}
		if lines, want := strings.Count(g.DOT(), "\n"), 6+len(g.Nodes)+len(g.Edges); lines != want {
			t.Fatalf("%d lines, want %d:\n%s", lines, want, g.DOT())
		}
		for line := range strings.Lines(g.DOT()) {
			if quotes := strings.Count(line, `"`) - escapedQuotes(line); quotes%2 != 0 {
				t.Fatalf("a quote that ends too early: %s", line)
			}
		}
	})
}

// elementsOf counts the elements of a document.
func elementsOf(t *rapid.T, text string) map[string]int {
	all := map[string]int{}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("no XML: %v\n%s", err, text)
		}
		if e, ok := token.(xml.StartElement); ok {
			all[e.Name.Local]++
		}
	}
}

// escapedQuotes counts the quotes that a backslash escapes.
func escapedQuotes(line string) int {
	n := 0
	for i := 0; i < len(line)-1; i++ {
		if line[i] == '\\' {
			if i++; line[i] == '"' {
				n++
			}
		}
	}
	return n
}

// A graph that can be drawn without a crossing has none.
func TestUntangled(t *testing.T) {
	g := graph.Graph{}
	for i := range 40 {
		kind := "vm"
		if i >= 20 {
			kind = "disk"
		}
		g.Nodes = append(g.Nodes, graph.Node{ID: fmt.Sprint(i), Kind: kind, Label: fmt.Sprint(i)})
	}
	for i := range 20 {
		g.Edges = append(g.Edges, graph.Edge{From: i, To: 20 + i*7%20})
		if i > 0 {
			g.Edges = append(g.Edges, graph.Edge{From: i - 1, To: 20 + i*7%20})
		}
	}
	if n := g.Crossings(); n != 0 {
		t.Errorf("%d links cross", n)
	}
}
