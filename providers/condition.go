package providers

import (
	"slices"

	"vmctl/condition"
	"vmctl/spec"
)

// Conditions returns the conditions of a kind, in the order of its shape. A condition that t does not
// produce has no producer.
func (t Type) Conditions(kind spec.Kind) []condition.Declared {
	shape, _ := spec.Shape(kind)
	all := make([]condition.Declared, 0, len(shape.Conditions))
	for _, name := range shape.Conditions {
		d := condition.Declared{Type: name}
		if slices.Contains(t.Produces[kind], name) {
			d.Producer = t.Name
		}
		all = append(all, d)
	}
	return all
}
