package spec

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
)

// Labelled returns the block of a name and a label in the values of a resource; cty.NilVal: there is none.
func Labelled(v cty.Value, name, label string) cty.Value {
	return ctyread.Attr(ctyread.Attr(v, name), label)
}
