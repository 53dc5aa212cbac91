package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// SchemaDocument is the language as JSON.
type SchemaDocument struct {
	FormatVersion string                 `json:"format_version"`
	Blocks        map[string]SchemaBlock `json:"blocks"`    // at the top of a file, by name
	Providers     map[string]SchemaBlock `json:"providers"` // provider blocks, by type
}

// SchemaBlock is the shape of a block as JSON.
type SchemaBlock struct {
	Doc           string                     `json:"doc"`
	Repeated      bool                       `json:"repeated,omitempty"`
	Labelled      bool                       `json:"labelled,omitempty"`       // each has a label
	Optional      bool                       `json:"optional,omitempty"`       // without the block, its attributes have no defaults
	Policy        bool                       `json:"policy,omitempty"`         // how vmctl treats the object, no part of the object
	Shorthand     string                     `json:"shorthand,omitempty"`      // NAME = VALUE sets this attribute
	ConflictsWith string                     `json:"conflicts_with,omitempty"` // a block that excludes this one
	Needs         string                     `json:"needs,omitempty"`          // the attribute without which it has no effect
	With          string                     `json:"with,omitempty"`           // the attribute beside it without which it must not stand
	InsideOf      []string                   `json:"inside_of,omitempty"`      // kinds in which its objects live
	Attributes    map[string]SchemaAttribute `json:"attributes"`
	Blocks        map[string]SchemaBlock     `json:"blocks"`
}

// SchemaAttribute is the shape of an attribute as JSON.
type SchemaAttribute struct {
	Doc       string   `json:"doc"`
	Type      string   `json:"type"`           // as HCL writes types; size, duration, reference, any
	Form      string   `json:"form,omitempty"` // the rule for a text
	Required  bool     `json:"required,omitempty"`
	With      string   `json:"with,omitempty"`    // the attribute beside it without which it must not stand, and is not required
	Default   any      `json:"default,omitempty"` // as a block writes it
	Computed  bool     `json:"computed,omitempty"`
	Policy    bool     `json:"policy,omitempty"`
	Sensitive bool     `json:"sensitive,omitempty"` // it may be
	OneOf     []string `json:"one_of,omitempty"`
	RefersTo  []string `json:"refers_to,omitempty"` // kinds
	Min       string   `json:"min,omitempty"`
	Max       string   `json:"max,omitempty"`
}

// SchemaJSON returns the language as a document.
func SchemaJSON() SchemaDocument {
	doc := SchemaDocument{FormatVersion: FormatVersion, Blocks: map[string]SchemaBlock{}, Providers: map[string]SchemaBlock{}}
	for _, b := range spec.Shapes() {
		doc.Blocks[b.Name] = schemaBlock(b)
	}
	for _, b := range spec.ProviderShapes() {
		doc.Providers[b.Name] = schemaBlock(b)
	}
	return doc
}

func schemaBlock(b spec.Block) SchemaBlock {
	doc := SchemaBlock{
		Doc: b.Doc, Repeated: b.Repeated, Labelled: b.Labelled, Optional: b.Optional, Policy: b.Policy,
		Shorthand: b.Shorthand, ConflictsWith: b.ConflictsWith, Needs: b.Needs, With: b.With, Attributes: map[string]SchemaAttribute{}, Blocks: map[string]SchemaBlock{},
	}
	if b.In != nil {
		doc.InsideOf = kindNames(b.In.Kinds)
	}
	for _, a := range b.Attrs {
		if !a.Derived {
			doc.Attributes[a.Name] = schemaAttribute(a)
		}
	}
	for _, nested := range b.Blocks {
		doc.Blocks[nested.Name] = schemaBlock(nested)
	}
	return doc
}

func schemaAttribute(a spec.Attr) SchemaAttribute {
	doc := SchemaAttribute{
		Doc: a.Doc, Type: typeText(a), Form: string(a.Form), Required: a.Required, With: a.With, Computed: a.Computed || a.Own,
		Policy: a.Policy, Sensitive: a.Sensitive, OneOf: a.OneOf, RefersTo: kindNames(a.Refers),
	}
	if text := defaultText(a); text != "" {
		doc.Default = Plain(a.Default)
		if a.Unit != spec.Plain {
			doc.Default = text
		}
	}
	if a.Min != 0 {
		doc.Min = amount(a, a.Min)
	}
	if a.Max != 0 {
		doc.Max = amount(a, a.Max)
	}
	return doc
}

func kindNames(kinds []spec.Kind) []string {
	var all []string
	for _, kind := range kinds {
		all = append(all, string(kind))
	}
	return all
}

func typeText(a spec.Attr) string {
	switch {
	case len(a.Refers) > 0:
		return "reference"
	case a.Unit == spec.Bytes:
		return "size"
	case a.Unit == spec.Duration:
		return "duration"
	case a.Type == cty.DynamicPseudoType || a.Type == cty.NilType:
		return "any"
	case a.Type.IsMapType():
		return "map(" + a.Type.ElementType().FriendlyName() + ")"
	case a.Type.IsListType():
		return "list(" + a.Type.ElementType().FriendlyName() + ")"
	default:
		return a.Type.FriendlyName()
	}
}

func amount(a spec.Attr, n int64) string {
	switch a.Unit {
	case spec.Bytes:
		return spec.FormatSize(n)
	case spec.Duration:
		return spec.FormatDuration(n)
	case spec.Plain:
	}
	return fmt.Sprint(n)
}

// defaultText returns a default as a plan writes it; "": there is none.
func defaultText(a spec.Attr) string {
	if a.Default == cty.NilVal {
		return ""
	}
	if n := a.Default; n.Type() == cty.Number && a.Unit != spec.Plain {
		whole, _ := n.AsBigFloat().Int64()
		return amount(a, whole)
	}
	return spec.FormatValue("", "", a.Default)
}

func sorted[T any](all map[string]T) []string { return slices.Sorted(maps.Keys(all)) }

// Schema lists the blocks of the language.
func Schema(s Screen, d SchemaDocument, next string) {
	p := &page{screen: s}
	for _, part := range []struct {
		title  string
		blocks map[string]SchemaBlock
	}{{"Blocks", d.Blocks}, {"Providers", d.Providers}} {
		p.put(0, 0, in(bold, part.title))
		var rows []row
		for _, name := range sorted(part.blocks) {
			rows = append(rows, row{name: name, value: part.blocks[name].Doc})
		}
		p.rows(rows)
		p.blank()
	}
	p.command("Next:", next)
	p.flush()
}

// ExplainDocument explains one block or one attribute, as JSON: one of the two is there.
type ExplainDocument struct {
	FormatVersion string           `json:"format_version"`
	Path          string           `json:"path"`
	Block         *SchemaBlock     `json:"block,omitempty"`
	Attribute     *SchemaAttribute `json:"attribute,omitempty"`
}

// Explain explains a block or an attribute.
func Explain(s Screen, d ExplainDocument) {
	p := &page{screen: s}
	if a := d.Attribute; a != nil {
		p.put(0, 2, in(bold, d.Path), txt(" "+a.notes()))
		p.put(2, 2, txt(a.Doc))
		p.rows(a.rows())
		p.flush()
		return
	}
	b := d.Block
	p.put(0, 2, in(bold, d.Path), txt(" "+b.notes()))
	p.put(2, 2, txt(b.Doc))
	if len(b.Attributes) > 0 {
		p.heading("Attributes")
	}
	for _, name := range sorted(b.Attributes) {
		a := b.Attributes[name]
		p.put(2, 6, in(bold, name), txt(" "+a.notes()))
		p.put(6, 6, txt(a.Doc))
	}
	if len(b.Blocks) > 0 {
		p.heading("Blocks")
	}
	for _, name := range sorted(b.Blocks) {
		p.put(2, 6, in(bold, name), txt(" "+b.Blocks[name].notes()))
		p.put(6, 6, txt(b.Blocks[name].Doc))
	}
	p.flush()
}

// notes describes an attribute in a few words: `duration, default 30s`.
func (a SchemaAttribute) notes() string {
	parts := []string{a.Type}
	if a.Required {
		parts = append(parts, "required")
	}
	if a.With != "" {
		parts = append(parts, "only with "+a.With)
	}
	if a.Computed {
		parts = append(parts, "known once the object exists")
	}
	if a.Default != nil {
		parts = append(parts, "default "+plainText(a.Default))
	}
	return strings.Join(parts, ", ")
}

func (a SchemaAttribute) rows() []row {
	var rows []row
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, row{name: name, value: value})
		}
	}
	add("one of", strings.Join(a.OneOf, ", "))
	add("refers to", strings.Join(a.RefersTo, ", "))
	add("at least", a.Min)
	add("at most", a.Max)
	add("form", a.Form)
	if a.Policy {
		add("policy", "how vmctl treats the object: changing it leaves the object as it is")
	}
	if a.Sensitive {
		add("sensitive", "if its value is; then no plan and no record shows it")
	}
	return rows
}

func (b SchemaBlock) notes() string {
	parts := []string{"block"}
	if b.Labelled {
		parts = append(parts, "with a label")
	}
	if b.Repeated {
		parts = append(parts, "any number of them")
	}
	if b.Policy {
		parts = append(parts, "policy")
	}
	if b.ConflictsWith != "" {
		parts = append(parts, "not with "+b.ConflictsWith)
	}
	if b.Needs != "" {
		parts = append(parts, "needs "+b.Needs)
	}
	if b.With != "" {
		parts = append(parts, "only with "+b.With)
	}
	return strings.Join(parts, ", ")
}
