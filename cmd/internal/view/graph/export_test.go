package graph

// Rect is a box of a drawing.
type Rect struct{ X, Y, W, H float64 }

// Boxes lays a graph out as SVG does. It returns the boxes of its nodes, and its lines as
// points a few pixels apart.
func (g Graph) Boxes() (boxes []Rect, lines []Line) {
	d := g.drawn()
	for i := range g.Nodes {
		x, y, w, h := d.corner(i)
		boxes = append(boxes, Rect{x, y, w, h})
	}
	for _, k := range d.links {
		lines = append(lines, Line{From: d.end(k.from), To: d.end(k.to), Points: d.points(k)})
	}
	return boxes, lines
}

// Line is one link of a drawing. From and To are the boxes at its ends, -1 at a bend.
type Line struct {
	From, To int
	Points   [][2]float64
}

func (d *drawing) end(i int) int {
	if d.items[i].bend {
		return -1
	}
	return i
}

// points returns points on the path that line draws.
func (d *drawing) points(k link) [][2]float64 {
	var all [][2]float64
	add := func(along, across float64) {
		x, y := d.point(along, across)
		all = append(all, [2]float64{x, y})
	}
	leave, curve, reach := d.ends(k)
	a, b := d.across[k.from], d.across[k.to]
	const parts = 200
	for i := range parts + 1 {
		t := float64(i) / parts
		add(leave+t*(curve-leave), a)
	}
	middle := (curve + reach) / 2
	for i := range parts + 1 {
		t := float64(i) / parts
		bezier := func(p0, p1, p2, p3 float64) float64 {
			s := 1 - t
			return s*s*s*p0 + 3*s*s*t*p1 + 3*s*t*t*p2 + t*t*t*p3
		}
		add(bezier(curve, middle, middle, reach), bezier(a, a, b, b))
	}
	return all
}

// Crossings returns the number of links that cross in the order that SVG takes.
func (g Graph) Crossings() int { return g.drawn().crossings() }
