package graph

import (
	"cmp"
	"slices"
)

// untangling is the number of passes over the layers, there and back.
const untangling = 12

// untangle orders the items of each layer so that few links cross. Layer by layer, each item
// moves to the mean place of its linked items; the order with the fewest crossings wins.
func (l *layering) untangle() {
	after, before := l.neighbours()
	best, least := l.order(), l.crossings()
	for round := 0; round < untangling && least > 0; round++ {
		for i := 1; i < len(l.layers); i++ {
			l.sort(i, before)
		}
		if n := l.crossings(); n < least {
			best, least = l.order(), n
		}
		for i := len(l.layers) - 2; i >= 0; i-- {
			l.sort(i, after)
		}
		if n := l.crossings(); n < least {
			best, least = l.order(), n
		}
	}
	l.layers = best
}

func (l *layering) order() [][]int {
	all := make([][]int, len(l.layers))
	for i, layer := range l.layers {
		all[i] = slices.Clone(layer)
	}
	return all
}

// places returns the place of each item in its layer.
func (l *layering) places() []int {
	at := make([]int, len(l.items))
	for _, layer := range l.layers {
		for place, i := range layer {
			at[i] = place
		}
	}
	return at
}

// sort orders the items of a layer by the mean places of their neighbours. An item without
// neighbours keeps its place.
func (l *layering) sort(layer int, neighbours [][]int) {
	at := l.places()
	mean := map[int]float64{}
	for _, i := range l.layers[layer] {
		mean[i] = float64(at[i])
		if n := len(neighbours[i]); n > 0 {
			sum := 0
			for _, j := range neighbours[i] {
				sum += at[j]
			}
			mean[i] = float64(sum) / float64(n)
		}
	}
	slices.SortStableFunc(l.layers[layer], func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
}

// crossings counts the pairs of links that cross.
func (l *layering) crossings() int {
	at := l.places()
	byLayer := make([][]link, len(l.layers))
	for _, k := range l.links {
		layer := l.items[k.from].layer
		byLayer[layer] = append(byLayer[layer], link{at[k.from], at[k.to]})
	}
	total := 0
	for layer, links := range byLayer {
		if len(links) == 0 {
			continue
		}
		slices.SortFunc(links, func(a, b link) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
		total += inversions(links, len(l.layers[layer+1]))
	}
	return total
}

// inversions counts the pairs of links whose ends are in the opposite order of their starts,
// with a tree of sums (Fenwick). The links are sorted.
func inversions(links []link, places int) int {
	sums := make([]int, places+1)
	total := 0
	for seen, k := range links {
		upTo := 0
		for i := k.to + 1; i > 0; i -= i & -i {
			upTo += sums[i]
		}
		total += seen - upTo
		for i := k.to + 1; i <= places; i += i & -i {
			sums[i]++
		}
	}
	return total
}
