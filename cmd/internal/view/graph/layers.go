package graph

import "slices"

// layering is a graph whose nodes stand in layers. Every edge is cut into links from one
// layer to the next, with a bend in each layer between. Edges to the same node share their
// bends.
type layering struct {
	items  []item
	layers [][]int // items of each layer, in order across
	links  []link  // each once
}

// item is a node, or a bend on the way to one.
type item struct {
	node  int // the node itself, or the target of the bend
	bend  bool
	layer int
	faint bool // of a bend: all edges over it are faint
}

type link struct{ from, to int } // items

// layered puts each node into the layer after the last of the nodes that lead to it.
func layered(g Graph) *layering {
	l := &layering{}
	depth := depths(g)
	last := 0
	for _, d := range depth {
		last = max(last, d)
	}
	leads := make([]bool, len(g.Nodes))
	for _, e := range g.Edges {
		leads[e.From] = true
	}
	for i, n := range g.Nodes {
		if n.Last && !leads[i] {
			depth[i] = last
		}
		l.items = append(l.items, item{node: i, layer: depth[i]})
	}
	bends := map[[2]int]int{} // by target and layer
	linked := map[link]bool{}
	for _, e := range g.Edges {
		from := e.From
		for layer := depth[e.From] + 1; layer < depth[e.To]; layer++ {
			key := [2]int{e.To, layer}
			if _, ok := bends[key]; !ok {
				bends[key] = len(l.items)
				l.items = append(l.items, item{node: e.To, bend: true, layer: layer, faint: true})
			}
			l.items[bends[key]].faint = l.items[bends[key]].faint && e.Faint
			l.link(linked, from, bends[key])
			from = bends[key]
		}
		l.link(linked, from, e.To)
	}
	l.layers = make([][]int, last+1)
	for _, i := range l.walk() {
		layer := l.items[i].layer
		l.layers[layer] = append(l.layers[layer], i)
	}
	return l
}

func (l *layering) link(linked map[link]bool, from, to int) {
	if k := (link{from, to}); !linked[k] {
		linked[k] = true
		l.links = append(l.links, k)
	}
}

// depths returns the length of the longest path to each node.
func depths(g Graph) []int {
	next, waits := make([][]int, len(g.Nodes)), make([]int, len(g.Nodes))
	for _, e := range g.Edges {
		next[e.From] = append(next[e.From], e.To)
		waits[e.To]++
	}
	depth := make([]int, len(g.Nodes))
	var ready []int
	for i := range g.Nodes {
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for ; len(ready) > 0; ready = ready[1:] {
		from := ready[0]
		for _, to := range next[from] {
			depth[to] = max(depth[to], depth[from]+1)
			if waits[to]--; waits[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	return depth
}

// walk lists the items in the order of a depth-first walk along the links, so that related
// items stand together.
func (l *layering) walk() []int {
	after, _ := l.neighbours()
	var met []int
	seen := make([]bool, len(l.items))
	var visit func(int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		met = append(met, i)
		for _, j := range after[i] {
			visit(j)
		}
	}
	starts := make([]int, len(l.items))
	for i := range starts {
		starts[i] = i
	}
	slices.SortStableFunc(starts, func(a, b int) int { return l.items[a].layer - l.items[b].layer })
	for _, i := range starts {
		visit(i)
	}
	return met
}

// neighbours lists, for each item, the items after it and the items before it.
func (l *layering) neighbours() (after, before [][]int) {
	after, before = make([][]int, len(l.items)), make([][]int, len(l.items))
	for _, k := range l.links {
		after[k.from] = append(after[k.from], k.to)
		before[k.to] = append(before[k.to], k.from)
	}
	return after, before
}
