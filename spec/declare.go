package spec

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/function"
)

// declarations holds the blocks of the files of a folder, before anything is evaluated.
type declarations struct {
	paths       []string         // of the files
	settings    *hclsyntax.Block // the vmctl block; nil without one
	variables   map[string]*hclsyntax.Block
	locals      map[string]*hclsyntax.Attribute
	outputs     map[string]*hclsyntax.Block
	checks      map[string]*hclsyntax.Block
	providers   map[ProviderRef]*hclsyntax.Block
	builtIn     ProviderRef                  // of resources that name no provider
	resources   map[Address]*hclsyntax.Block // by the address of the block
	stateBlocks []*hclsyntax.Block           // moved, removed and import blocks, as they stand in the files
	functions   map[string]function.Function // that expressions may call

	duplicates        map[Address]bool // resource blocks that are declared more than once
	duplicateSettings bool
	removalsUnread    bool // a file that may hold removed blocks cannot be parsed
}

func newDeclarations() *declarations {
	return &declarations{
		variables:  map[string]*hclsyntax.Block{},
		locals:     map[string]*hclsyntax.Attribute{},
		outputs:    map[string]*hclsyntax.Block{},
		checks:     map[string]*hclsyntax.Block{},
		providers:  map[ProviderRef]*hclsyntax.Block{},
		resources:  map[Address]*hclsyntax.Block{},
		duplicates: map[Address]bool{},
	}
}

// add adds the top-level blocks of one file.
func (d *declarations) add(body *hclsyntax.Body) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, a := range attributesOf(body) {
		diags = append(diags, mistake(a.NameRange, "Unexpected attribute",
			"`%s` stands outside of any block. Values with a name go into `locals { … }`, settings into `vmctl { … }`.", a.Name))
	}
	for _, b := range body.Blocks {
		if b.Type == "locals" {
			diags = append(diags, d.addLocals(b)...)
			continue
		}
		if m := d.addBlock(b); m != nil {
			diags = append(diags, m)
		}
	}
	return diags
}

func (d *declarations) addBlock(b *hclsyntax.Block) *hcl.Diagnostic {
	switch b.Type {
	case "vmctl":
		return d.addSettings(b)
	case "variable":
		return addLabelled(b, d.variables)
	case "output":
		return addLabelled(b, d.outputs)
	case checkShape.Name:
		return addLabelled(b, d.checks)
	case "provider":
		return d.addProvider(b)
	case movedShape.Name, removedShape.Name, importShape.Name:
		d.stateBlocks = append(d.stateBlocks, b)
		return checkLabels(b)
	}
	if _, ok := resourceShapes[Kind(b.Type)]; ok {
		return d.addResource(b)
	}
	d.removalsUnread = true // it may be a removed block with a slip in its name
	return mistake(b.TypeRange, "Unknown block", "There is no block `%s`.%s", b.Type,
		DidYouMean(b.Type, rootBlocks))
}

func (d *declarations) addSettings(b *hclsyntax.Block) *hcl.Diagnostic {
	if m := checkLabels(b); m != nil {
		return m
	}
	if d.settings != nil {
		d.duplicateSettings = true
		return mistake(b.DefRange(), "Declared twice", "`vmctl` is declared at %s already. Merge the two blocks.", formatRange(d.settings.DefRange()))
	}
	d.settings = b
	return nil
}

func (d *declarations) addLocals(b *hclsyntax.Block) hcl.Diagnostics {
	if m := checkLabels(b); m != nil {
		return hcl.Diagnostics{m}
	}
	var diags hcl.Diagnostics
	for _, nested := range b.Body.Blocks {
		diags = append(diags, mistake(nested.TypeRange, "Unexpected block",
			"`locals` holds attributes only: write `%s = { … }`.", nested.Type))
	}
	for _, a := range attributesOf(b.Body) {
		if before, ok := d.locals[a.Name]; ok {
			diags = append(diags, mistake(a.NameRange, "Declared twice",
				"`local.%s` is declared at %s already. Remove one, or rename it.", a.Name, formatRange(before.NameRange)))
			continue
		}
		d.locals[a.Name] = a
	}
	return diags
}

func addLabelled(b *hclsyntax.Block, into map[string]*hclsyntax.Block) *hcl.Diagnostic {
	if m := checkLabels(b, "name"); m != nil {
		return m
	}
	if before, ok := into[b.Labels[0]]; ok {
		return duplicate(b, before.DefRange())
	}
	into[b.Labels[0]] = b
	return nil
}

func (d *declarations) addProvider(b *hclsyntax.Block) *hcl.Diagnostic {
	if m := checkLabels(b, "type", "name"); m != nil {
		return m
	}
	ref := ProviderRef{Type: b.Labels[0], Name: b.Labels[1]}
	if before, ok := d.providers[ref]; ok {
		return duplicate(b, before.DefRange())
	}
	d.providers[ref] = b
	return nil
}

func (d *declarations) addResource(b *hclsyntax.Block) *hcl.Diagnostic {
	if m := checkLabels(b, "name"); m != nil {
		return m
	}
	addr := Address{Kind: Kind(b.Type), Name: b.Labels[0]}
	if before, ok := d.resources[addr]; ok {
		d.duplicates[addr] = true
		return duplicate(b, before.DefRange())
	}
	d.resources[addr] = b
	return nil
}

// checkLabels asks for exactly these labels, each fit to stand in a reference.
func checkLabels(b *hclsyntax.Block, names ...string) *hcl.Diagnostic {
	header := b.Type
	for _, n := range names {
		header += ` "` + n + `"`
	}
	switch {
	case len(b.Labels) > len(names):
		return mistake(b.LabelRanges[len(names)], "Too many labels", "Write `%s { … }`.", header)
	case len(b.Labels) < len(names):
		return mistake(b.DefRange(), "Missing label", "A `%s` block needs a %s: write `%s { … }`.", b.Type, names[len(b.Labels)], header)
	}
	for i, label := range b.Labels {
		if !labelPattern.MatchString(label) {
			return mistake(b.LabelRanges[i], "Invalid label",
				"%q cannot stand in a reference. Begin with a letter and go on with letters, digits, `_` and `-`.", shorten(label))
		}
	}
	return nil
}

func duplicate(b *hclsyntax.Block, before hcl.Range) *hcl.Diagnostic {
	header := b.Type
	for _, label := range b.Labels {
		header += ` "` + label + `"`
	}
	return mistake(b.DefRange(), "Declared twice", "`%s` is declared at %s already. Remove one, or rename it.", header, formatRange(before))
}

// attributesOf returns the attributes of a body as they stand in the file.
func attributesOf(body *hclsyntax.Body) []*hclsyntax.Attribute {
	attrs := make([]*hclsyntax.Attribute, 0, len(body.Attributes))
	for _, a := range body.Attributes {
		attrs = append(attrs, a)
	}
	slices.SortFunc(attrs, func(a, b *hclsyntax.Attribute) int {
		return cmp.Compare(a.NameRange.Start.Byte, b.NameRange.Start.Byte)
	})
	return attrs
}
