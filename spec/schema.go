package spec

import (
	"cmp"
	"maps"
	"slices"
)

// Kinds lists the kinds of resources, sorted.
func Kinds() []Kind { return slices.Sorted(maps.Keys(resourceShapes)) }

// Shapes lists the shapes of the blocks at the top of a file, by name: settings of the project, and
// every kind of resource. ProviderShapes has those of provider blocks; a locals block has none.
func Shapes() []Block {
	all := []Block{vmctlShape, variableShape, outputShape, checkShape, movedShape, removedShape, importShape}
	for _, kind := range Kinds() {
		all = append(all, resourceShapes[kind])
	}
	slices.SortFunc(all, func(a, b Block) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// ProviderShapes lists the shapes of the types of providers, by type.
func ProviderShapes() []Block {
	var all []Block
	for _, typ := range slices.Sorted(maps.Keys(providerShapes)) {
		all = append(all, providerShapes[typ])
	}
	return all
}
