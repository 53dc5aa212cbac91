// Package box adds a kind to the language that only tests have: a box, which is inside of a VM or
// of another box, and its provider, which uses nothing but the guest around it.
package box

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// The conditions of a box. A provider type may produce both, one or none of them.
const (
	Sealed = "box.sealed"
	Lit    = "box.lit"
)

// Kind is a folder in a VM's guest, or on this host, that can be open, like an engine that runs, or closed. What is
// inside of a box can be seen only while the box is open.
var Kind = spec.Register(spec.Block{ //nolint:gochecknoglobals // a kind is registered once
	Version: 1, Name: "box", In: &spec.In{Attr: "in", Kinds: []spec.Kind{spec.VM, "box"}, Optional: true},
	Conditions: []string{Sealed, Lit},
	Doc:        "A folder inside of a virtual machine or of another box.",
	Attrs:      Attrs(),
})

// Attrs returns the attributes of a box.
func Attrs() []spec.Attr {
	return []spec.Attr{
		{Name: "for_each", Type: cty.DynamicPseudoType, Meta: true, Doc: "A map, or a set of strings: one box for each key."},
		{Name: "depends_on", Type: cty.DynamicPseudoType, Meta: true, Doc: "References to resources that must be ready before it is made."},
		{Name: "in", Type: cty.String, Refers: []spec.Kind{spec.VM, "box"}, Known: true, Doc: "What it is inside of, as a reference; null: this host."},
		{Name: "label", Type: cty.String, Form: spec.ObjectName, Required: true, Known: true, Doc: "The folder's name; no two boxes in one place share it."},
		{Name: "running", Type: cty.Bool, Default: cty.True, Known: true, Doc: "Whether it is open."},
		{Name: "content", Type: cty.String, Default: cty.StringVal(""), Sensitive: true, Doc: "The text in it, which can be written at any time."},
		{Name: "paint", Type: cty.String, Default: cty.StringVal(""), Doc: "Its colour, which can change only while it is closed."},
		{Name: "id", Type: cty.String, Computed: true, Doc: "Its identity."},
	}
}
