package graph

import "math"

// The measures of a drawing, in pixels.
const (
	cellWidth  = 8.0 // of a letter of the label: 0.6 of its size, and some
	noteCell   = 6.8 // of a letter of the note
	padding    = 12.0
	lineHeight = 34.0 // of a box with a label
	noteHeight = 48.0 // of one with a note, too
	margin     = 20.0
	titleSpace = 28.0
	nodeGap    = 16.0 // between boxes of one layer
	bendGap    = 10.0 // beside a bend
	leastSpace = 64.0 // between layers
	mostSpace  = 200.0
	steepness  = 0.2 // pixels between layers for each pixel that a link leads aside
	settling   = 10  // number of passes over the layers, there and back
)

// direction is the direction of a drawing. Along is the axis in that direction, across the
// other one.
type direction int

const (
	right direction = iota
	down
)

// size is the room that a box takes.
type size struct{ along, across float64 }

// placing is a layering with a place for every item.
type placing struct {
	*layering
	sizes  []size    // of each item
	across []float64 // middle of each item
	start  []float64 // of each layer, along
	thick  []float64 // of each layer, along
	length float64   // of the drawing, along
	width  float64   // of the drawing, across
}

// place finds a place for every item: beside its linked items, as far as the order and the
// room for its neighbours allow.
func place(l *layering, boxes []size) *placing {
	p := &placing{layering: l, sizes: make([]size, len(l.items)), across: make([]float64, len(l.items))}
	p.thick = make([]float64, len(l.layers))
	for i, it := range l.items {
		if !it.bend {
			p.sizes[i] = boxes[i]
			p.thick[it.layer] = max(p.thick[it.layer], boxes[i].along)
		}
	}
	after, before := l.neighbours()
	for i := range l.layers {
		p.settle(i, nil, nil)
	}
	for range settling {
		for i := range l.layers {
			p.settle(i, before, nil)
		}
		for i := len(l.layers) - 1; i >= 0; i-- {
			p.settle(i, after, nil)
		}
	}
	for i := range l.layers {
		p.settle(i, before, after)
	}
	p.measure()
	return p
}

// gap returns the least distance between the middles of two neighbours in a layer.
func (p *placing) gap(a, b int) float64 {
	free := nodeGap
	if p.items[a].bend || p.items[b].bend {
		free = bendGap
	}
	return p.sizes[a].across/2 + free + p.sizes[b].across/2
}

// settle moves the items of a layer as near as possible to the middle of their linked items.
// It keeps the order and the gaps, and minimises the sum of squared distances: items that
// would overlap form a block, and each block goes to the mean of its items' wishes.
func (p *placing) settle(layer int, one, other [][]int) {
	type block struct {
		sum   float64
		count int
	}
	mean := func(b block) float64 { return b.sum / float64(b.count) }
	var blocks []block
	items := p.layers[layer]
	offsets := make([]float64, len(items))
	for at, i := range items {
		if at > 0 {
			offsets[at] = offsets[at-1] + p.gap(items[at-1], i)
		}
		blocks = append(blocks, block{sum: p.wish(i, one, other) - offsets[at], count: 1})
		for n := len(blocks); n > 1 && mean(blocks[n-2]) > mean(blocks[n-1]); n-- {
			blocks[n-2] = block{blocks[n-2].sum + blocks[n-1].sum, blocks[n-2].count + blocks[n-1].count}
			blocks = blocks[:n-1]
		}
	}
	at := 0
	for _, b := range blocks {
		for range b.count {
			p.across[items[at]] = mean(b) + offsets[at]
			at++
		}
	}
}

// wish returns the best place for an item: the mean place of its linked items.
func (p *placing) wish(i int, one, other [][]int) float64 {
	sum, n := 0.0, 0
	for _, neighbours := range [][][]int{one, other} {
		if neighbours == nil {
			continue
		}
		for _, j := range neighbours[i] {
			sum += p.across[j]
			n++
		}
	}
	if n == 0 {
		return p.across[i]
	}
	return sum / float64(n)
}

// measure rounds all places to whole pixels, and sets the room between layers: more where
// links lead far aside.
func (p *placing) measure() {
	least, most := math.Inf(1), math.Inf(-1)
	for i := range p.items {
		least = min(least, p.across[i]-p.sizes[i].across/2)
		most = max(most, p.across[i]+p.sizes[i].across/2)
	}
	for i := range p.items {
		p.across[i] = math.Round(p.across[i] - least)
	}
	if len(p.items) > 0 {
		p.width = math.Ceil(most - least)
	}
	aside := make([]float64, len(p.layers))
	for _, k := range p.links {
		layer := p.items[k.from].layer
		aside[layer] = max(aside[layer], math.Abs(p.across[k.from]-p.across[k.to]))
	}
	at := 0.0
	for i := range p.layers {
		p.start = append(p.start, at)
		at += p.thick[i]
		p.length = at
		at += math.Round(min(max(leastSpace, aside[i]*steepness), mostSpace))
	}
}

// larger returns the longer side of the drawing.
func (p *placing) larger() float64 { return max(p.length, p.width) }
