package spec

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Reach is a way in which a resource reaches beyond itself, which whoever approves a plan wants to see.
type Reach string

// The ways in which a resource reaches beyond itself.
const (
	ReachPort     Reach = "port"     // it listens on the machine that it is on
	ReachFolder   Reach = "folder"   // it reads or writes files of this host
	ReachVariable Reach = "variable" // it gets an environment variable of this host
	ReachCommand  Reach = "command"  // it runs a command, on this host if it is not inside of a VM
	ReachServer   Reach = "server"   // it is an object of a server that is called from this host
)

// Reached is one thing that a resource reaches.
type Reached struct {
	What Reach
	Text string // its attributes, without what is sensitive
}

// Reaches lists what a resource reaches by its attributes, sorted, each once. dir is the folder of the spec: folders below it
// are written relative to it, the same on every machine.
func Reaches(kind Kind, want, policy cty.Value, dir string) []Reached {
	r := reacher{dir: dir}
	for _, half := range []cty.Value{want, policy} {
		r.block(resourceShapes[kind], half)
	}
	return r.sorted()
}

// ProviderReaches lists what each resource of a provider reaches by the provider's attributes, as Reaches does.
func ProviderReaches(providerType string, attrs cty.Value, dir string) []Reached {
	r := reacher{dir: dir}
	r.block(providerShapes[providerType], attrs)
	return r.sorted()
}

type reacher struct {
	dir string
	all []Reached
}

func (r *reacher) sorted() []Reached {
	slices.SortFunc(r.all, func(a, b Reached) int { return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Text, b.Text)) })
	return r.all
}

func (r *reacher) add(what Reach, text string) {
	if entry := (Reached{what, text}); !slices.Contains(r.all, entry) {
		r.all = append(r.all, entry)
	}
}

// block adds what the attributes and the nested blocks of a block reach.
func (r *reacher) block(shape Block, v cty.Value) {
	for _, a := range shape.Attrs {
		if a.Reach != "" {
			r.attribute(a, part(v, a.Name))
		}
	}
	for _, b := range shape.Blocks {
		r.nested(b, part(v, b.Name))
	}
}

func (r *reacher) attribute(a Attr, v cty.Value) {
	switch {
	case isNothing(v):
	case a.Type.IsListType() && a.Reach == ReachVariable && v.IsWhollyKnown() && !v.ContainsMarked():
		for _, name := range v.AsValueSlice() {
			r.add(a.Reach, name.AsString())
		}
	default:
		r.add(a.Reach, a.Name+" "+r.text(v))
	}
}

// nested adds what the blocks of one name reach.
func (r *reacher) nested(b Block, v cty.Value) {
	v, _ = v.Unmark()
	switch {
	case isNothing(v):
	case !v.IsKnown():
		if b.Reach != "" {
			r.add(b.Reach, b.Name+" (known after apply)")
		}
	case b.Labelled:
		for label := range v.Type().AttributeTypes() {
			r.one(b, label+": ", v.GetAttr(label))
		}
	case b.Repeated:
		for _, element := range v.AsValueSlice() {
			r.one(b, "", element)
		}
	default:
		r.one(b, "", v)
	}
}

func (r *reacher) one(b Block, label string, v cty.Value) {
	if b.Reach != "" {
		var words []string
		for _, a := range b.Attrs {
			if value := part(v, a.Name); !isNothing(value) && !a.Derived && !a.Computed && a.Unit != Duration {
				words = append(words, a.Name+" "+r.text(value))
			}
		}
		r.add(b.Reach, label+strings.Join(words, ", "))
	}
	r.block(b, v)
}

// text returns a value for people.
func (r *reacher) text(v cty.Value) string {
	switch {
	case v.ContainsMarked():
		return "(sensitive)"
	case !v.IsWhollyKnown():
		return "(known after apply)"
	case v.Type() == cty.String:
		return r.place(v.AsString())
	}
	text, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return v.GoString()
	}
	return string(text)
}

// place returns a path below the folder of the spec relative to that, and any other text as it is.
func (r *reacher) place(text string) string {
	rest, err := filepath.Rel(r.dir, text)
	if err != nil || !filepath.IsAbs(text) || !filepath.IsLocal(rest) {
		return text
	}
	return "./" + filepath.ToSlash(rest)
}

// part returns an attribute of an object; cty.NilVal: there is none.
func part(v cty.Value, name string) cty.Value {
	if isNothing(v) {
		return cty.NilVal
	}
	v, marks := v.Unmark()
	if !v.IsKnown() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	return v.GetAttr(name).WithMarks(marks)
}
