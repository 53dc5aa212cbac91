package graph

import (
	"fmt"
	"html"
	"math"
	"strings"

	"vmctl/cmd/internal/view"
)

// mostCells is the greatest width of a label. A longer label loses its middle; the title of
// its box, which browsers show, has all of it.
const mostCells = 48

// SVG returns the graph as a picture. It leads to the right or down, whichever makes the
// longer side shorter. Boxes do not overlap, and no line crosses a box.
func (g Graph) SVG() string { return g.drawn().svg() }

func (g Graph) drawn() *drawing {
	layers := layered(g)
	layers.untangle()
	sideways, downwards := place(layers, g.sizes(right)), place(layers, g.sizes(down))
	if downwards.larger() < sideways.larger() {
		return &drawing{graph: g, placing: downwards, leads: down}
	}
	return &drawing{graph: g, placing: sideways, leads: right}
}

// sizes returns the size of each box.
func (g Graph) sizes(leads direction) []size {
	height := lineHeight
	for _, n := range g.Nodes {
		if n.Note != "" {
			height = noteHeight
		}
	}
	all := make([]size, len(g.Nodes))
	for i, n := range g.Nodes {
		width := 2*padding + math.Ceil(max(cellWidth*float64(view.Width(shown(n.Label))), noteCell*float64(view.Width(shown(n.Note)))))
		all[i] = size{along: width, across: height}
		if leads == down {
			all[i] = size{along: height, across: width}
		}
	}
	return all
}

func shown(text string) string { return view.CutMiddle(view.Text(text), mostCells) }

// drawing writes a placing.
type drawing struct {
	*placing
	graph Graph
	leads direction
	text  strings.Builder
}

func (d *drawing) svg() string {
	width, height := d.point(d.length, d.width)
	title := 2*margin + math.Ceil(cellWidth*float64(view.Width(view.Text(d.graph.Title))))
	width, height = max(width+margin, title), height+margin
	d.put(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace">`,
		pixels(width), pixels(height), pixels(width), pixels(height))
	d.put(`<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#64748b"/></marker></defs>`)
	d.put(`<rect width="100%%" height="100%%" fill="#ffffff"/>`)
	d.put(`<text x="%s" y="%s" font-size="13" font-weight="bold" fill="#0f172a">%s</text>`, pixels(margin), pixels(margin+8), xmlText(d.graph.Title))
	solid, faint := d.strokes()
	for _, k := range faint { // below the others
		d.line(k, "#cbd5e1")
	}
	for _, k := range solid {
		d.line(k, "#64748b")
	}
	for i, n := range d.graph.Nodes {
		d.box(i, n)
	}
	d.put(`</svg>`)
	return d.text.String()
}

func (d *drawing) put(format string, args ...any) { fmt.Fprintf(&d.text, format+"\n", args...) }

// point converts a place along and across to a point of the picture.
func (d *drawing) point(along, across float64) (x, y float64) {
	if d.leads == down {
		along, across = across, along
	}
	return margin + along, margin + titleSpace + across
}

// strokes separates the links. A link is faint if only faint edges go over it.
func (d *drawing) strokes() (solid, faint []link) {
	plain := map[link]bool{}
	for _, e := range d.graph.Edges {
		if !e.Faint {
			plain[link{e.From, e.To}] = true
		}
	}
	for _, k := range d.links {
		from, to := d.items[k.from], d.items[k.to]
		if from.bend && from.faint || !from.bend && !to.bend && !plain[k] || !from.bend && to.bend && !plain[link{from.node, to.node}] {
			faint = append(faint, k)
			continue
		}
		solid = append(solid, k)
	}
	return solid, faint
}

// line draws one link: straight over the layer of a bend, in a curve between
// layers, with an arrow where it reaches its box.
func (d *drawing) line(k link, color string) {
	leave, curve, reach := d.ends(k)
	middle := (curve + reach) / 2
	a, b := d.across[k.from], d.across[k.to]
	path := "M" + d.at(leave, a)
	if leave != curve {
		path += " L" + d.at(curve, a)
	}
	path += " C" + d.at(middle, a) + " " + d.at(middle, b) + " " + d.at(reach, b)
	arrow := ""
	if !d.items[k.to].bend {
		arrow = ` marker-end="url(#arrow)"`
	}
	d.put(`<path d="%s" fill="none" stroke="%s" stroke-width="1.5"%s/>`, path, color, arrow)
}

// ends returns the places along at which a link begins, begins to curve, and ends.
func (d *drawing) ends(k link) (leave, curve, reach float64) {
	from, to := d.items[k.from], d.items[k.to]
	curve = d.start[from.layer] + d.thick[from.layer]
	leave = curve
	if from.bend {
		leave = d.start[from.layer]
	}
	return leave, curve, d.start[to.layer]
}

func (d *drawing) at(along, across float64) string {
	x, y := d.point(along, across)
	return pixels(x) + "," + pixels(y)
}

// corner returns the upper left corner of a box, and its size.
func (d *drawing) corner(i int) (x, y, w, h float64) {
	layer := d.items[i].layer
	x, y = d.point(d.start[layer], d.across[i]-d.sizes[i].across/2)
	w, h = d.thick[layer], d.sizes[i].across
	if d.leads == down {
		w, h = h, w
	}
	return x, y, w, h
}

func (d *drawing) box(i int, n Node) {
	x, y, w, h := d.corner(i)
	c := colorsOf(n.Kind)
	d.put(`<g><title>%s</title>`, xmlText(strings.TrimSpace(n.Label+" "+n.Note)))
	d.put(`<rect x="%s" y="%s" width="%s" height="%s" rx="6" fill="%s" stroke="%s"/>`, pixels(x), pixels(y), pixels(w), pixels(h), c.fill, c.line)
	label := y + h/2 + 4.5
	if n.Note != "" {
		label = y + h/2 - 3
		d.put(`<text x="%s" y="%s" font-size="11" fill="%s">%s</text>`, pixels(x+padding), pixels(y+h/2+14), c.text, xmlText(shown(n.Note)))
	}
	d.put(`<text x="%s" y="%s" font-size="13" fill="%s">%s</text></g>`, pixels(x+padding), pixels(label), c.text, xmlText(shown(n.Label)))
}

// pixels writes a length, to a tenth.
func pixels(n float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
}

// xmlText escapes text for XML. It keeps spaces side by side.
func xmlText(text string) string { return html.EscapeString(view.Text(text)) }
