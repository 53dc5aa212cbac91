package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// reference is one use of a name in an expression.
type reference struct {
	root string // "var", "local", "each", or a kind of resource
	name string
	rng  hcl.Range
	// For a resource: the instance, if it is written as vm.web["a"], or as vm.web[each.key], and
	// the attribute. Empty: the whole resource.
	key     string
	keyExpr hclsyntax.Expression
	attr    string

	item hclsyntax.Expression // the key of the item of a for_each whose value it is in; nil: of none
}

// target returns the name that r refers to, without its instance.
func (r reference) target() nodeName { return nodeName{root: r.root, name: r.name} }

// nodeName identifies a declaration: its name in references.
type nodeName struct{ root, name string }

func (n nodeName) String() string { return n.root + "." + n.name }

func (n nodeName) compare(m nodeName) int {
	return strings.Compare(n.String(), m.String())
}

// block returns the address of a resource's block.
func (n nodeName) block() Address { return Address{Kind: Kind(n.root), Name: n.name} }

// references returns the references of one expression, and reports those that refer to nothing.
// An expression with such a reference must not be evaluated.
func (d *declarations) references(expr hclsyntax.Expression, scope scope) ([]reference, hcl.Diagnostics) {
	var refs []reference
	var diags hcl.Diagnostics
	for _, call := range unknownCalls(expr, d.functions) {
		diags = append(diags, mistake(call.NameRange, "Unknown function", "There is no function `%s`.%s", call.Name,
			DidYouMean(call.Name, slices.Sorted(maps.Keys(d.functions)))))
	}
	var dynamic map[hcl.Range]hclsyntax.Expression
	for _, t := range hclsyntax.Variables(expr) {
		ref, m := d.reference(t, scope)
		if m != nil {
			diags = append(diags, m)
			continue
		}
		if ref.root == "self" {
			continue // the context of the expression has it
		}
		if ref.root != "each" && ref.root != "var" && ref.root != "local" && ref.key == "" && ref.attr == "" {
			if dynamic == nil {
				dynamic = indexedBy(expr)
			}
			ref.keyExpr = dynamic[ref.rng]
		}
		refs = append(refs, ref)
	}
	return refs, diags
}

// scope describes the place of an expression.
type scope struct {
	owner nodeName // the declaration that the expression belongs to
	each  bool     // whether each.key and each.value exist
	self  bool     // whether self exists: the resource that the expression belongs to
	// plain allows variables and locals only: the value that it names is needed before anything
	// is observed. "": resources are allowed.
	plain string
}

func (d *declarations) reference(t hcl.Traversal, in scope) (reference, *hcl.Diagnostic) {
	root := t.RootName()
	ref := reference{root: root, rng: t.SourceRange()}
	if len(t) > 1 {
		if step, ok := t[1].(hcl.TraverseAttr); ok {
			ref.name = step.Name
		}
	}
	switch root {
	case "var", "local":
		return ref, d.mustBeDeclared(ref)
	case "each":
		return ref, checkEach(ref, in)
	case "self":
		return ref, d.checkSelf(ref, t, in)
	case "provider":
		return ref, mistake(ref.rng, "Unexpected reference",
			"Only `provider = …` can refer to a provider; expressions cannot read its settings.")
	}
	if _, ok := resourceShapes[Kind(root)]; ok {
		if in.plain != "" {
			return ref, mistake(ref.rng, "Unexpected reference",
				"%s is evaluated before any resource: use only variables and locals.", in.plain)
		}
		return d.resourceReference(ref, t, in)
	}
	return ref, d.unknownRoot(ref, t)
}

// mustBeDeclared returns a diagnostic if ref names nothing.
func (d *declarations) mustBeDeclared(ref reference) *hcl.Diagnostic {
	kind := ref.root
	if kind == "var" {
		kind = "variable"
	}
	if ref.name == "" {
		return mistake(ref.rng, "Incomplete reference", "Write `%s.NAME`, the name of a %s.", ref.root, kind)
	}
	if d.declares(ref.target()) {
		return nil
	}
	return mistake(ref.rng, "Unknown "+kind, "`%s.%s` is not declared.%s%s", ref.root, ref.name,
		DidYouMean(ref.name, d.declared(ref.root)), d.elsewhere(ref))
}

func (d *declarations) declares(n nodeName) bool {
	var ok bool
	switch n.root {
	case "var":
		_, ok = d.variables[n.name]
	case "local":
		_, ok = d.locals[n.name]
	default:
		_, ok = d.resources[n.block()]
	}
	return ok
}

// declared lists the names that may follow a root, sorted.
func (d *declarations) declared(root string) []string {
	var names []string
	switch root {
	case "var":
		names = slices.Collect(maps.Keys(d.variables))
	case "local":
		names = slices.Collect(maps.Keys(d.locals))
	default:
		for addr := range d.resources {
			if string(addr.Kind) == root {
				names = append(names, addr.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// elsewhere returns a hint if the name exists as something else.
func (d *declarations) elsewhere(ref reference) string {
	if _, ok := d.variables[ref.name]; ok && ref.root != "var" {
		return fmt.Sprintf(" There is a variable of that name: `var.%s`.", ref.name)
	}
	if _, ok := d.locals[ref.name]; ok && ref.root != "local" {
		return fmt.Sprintf(" There is a local of that name: `local.%s`.", ref.name)
	}
	return ""
}

func checkEach(ref reference, in scope) *hcl.Diagnostic {
	switch {
	case !in.each:
		return mistake(ref.rng, "No for_each here", "`each` exists only in a block that has `for_each`, and not in `for_each` itself.")
	case ref.name != "key" && ref.name != "value":
		return mistake(ref.rng, "Incomplete reference", "Write `each.key` or `each.value`.")
	}
	return nil
}

// checkSelf returns a diagnostic if self.ATTRIBUTE names nothing.
func (d *declarations) checkSelf(ref reference, t hcl.Traversal, in scope) *hcl.Diagnostic {
	switch {
	case !in.self:
		return mistake(ref.rng, "No self here", "`self` exists only in a `postcondition`: it is the resource once it was changed.")
	case len(t) == 1:
		return nil
	}
	ref.root, ref.attr = in.owner.root, stepName(t[1])
	if !isAttribute(ref.root, ref.attr) {
		return d.unknownAttribute(ref)
	}
	return nil
}

// resourceReference reads vm.dev.address, vm.web["a"].address and their beginnings.
func (d *declarations) resourceReference(ref reference, t hcl.Traversal, in scope) (reference, *hcl.Diagnostic) {
	if m := d.mustBeDeclared(ref); m != nil {
		return ref, m
	}
	if ref.target() == in.owner && in.self {
		return ref, mistake(ref.rng, "Self reference", "A postcondition of `%s` refers to it as `self`.", in.owner)
	}
	if ref.target() == in.owner {
		return ref, mistake(ref.rng, "Self reference",
			"`%s` refers to itself. Put a value that is needed twice into `locals`.", in.owner)
	}
	rest := t[2:]
	_, forEach := d.resources[ref.target().block()].Body.Attributes["for_each"]
	if forEach && len(rest) > 0 {
		ref.key = stepName(rest[0])
		if ref.key == "" {
			return ref, mistake(ref.rng, "Invalid key", "The keys of `%s` are strings: write `%s[\"KEY\"]`.", ref.target(), ref.target())
		}
		if _, isAttr := rest[0].(hcl.TraverseAttr); isAttr && isAttribute(ref.root, ref.key) {
			return ref, mistake(ref.rng, "Missing key", "`%s` has `for_each`: write `%s[\"KEY\"].%s`.", ref.target(), ref.target(), ref.key)
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return ref, nil
	}
	if _, isIndex := rest[0].(hcl.TraverseIndex); isIndex && !forEach {
		return ref, mistake(ref.rng, "Unexpected key", "`%s` has no `for_each`: write `%s` without a key.", ref.target(), ref.target())
	}
	ref.attr = stepName(rest[0])
	if !isAttribute(ref.root, ref.attr) {
		return ref, d.unknownAttribute(ref)
	}
	return ref, nil
}

func (d *declarations) unknownAttribute(ref reference) *hcl.Diagnostic {
	shape := resourceShapes[Kind(ref.root)]
	if slices.Contains(shape.Later, ref.attr) {
		return mistake(ref.rng, "Not built in yet", "`%s` of a %s is not built in yet.", ref.attr, ref.root)
	}
	return mistake(ref.rng, "Unknown attribute", "A %s has no attribute `%s`.%s", ref.root, ref.attr,
		DidYouMean(ref.attr, readable(shape)))
}

// readable lists the attributes and blocks of a resource that references see.
func readable(shape Block) []string {
	var names []string
	for _, a := range shape.Attrs {
		if !a.Meta {
			names = append(names, a.Name)
		}
	}
	for _, b := range shape.Blocks {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return names
}

func isAttribute(kind, attr string) bool {
	return slices.Contains(readable(resourceShapes[Kind(kind)]), attr)
}

// stepName returns the name of an attribute step, or the key of an index step; "" if the key is
// no string.
func stepName(step hcl.Traverser) string {
	switch step := step.(type) {
	case hcl.TraverseAttr:
		return step.Name
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() {
			return step.Key.AsString()
		}
	}
	return ""
}

// unknownRoot explains a name that begins no reference.
func (d *declarations) unknownRoot(ref reference, t hcl.Traversal) *hcl.Diagnostic {
	switch ref.root {
	case "path":
		return mistake(ref.rng, "Unknown name", "There is no `path`: relative paths are read from the folder of the spec.")
	case "count":
		return mistake(ref.rng, "Unknown name", "There is no `count`: use `for_each` and `each.key`.")
	}
	bare := reference{name: ref.root, rng: ref.rng}
	if hint := d.elsewhere(bare); hint != "" {
		return mistake(ref.rng, "Unknown name", "`%s` is not a reference.%s", ref.root, hint)
	}
	if len(t) == 1 {
		return mistake(ref.rng, "Unknown name", "`%s` is not a reference. Put text in quotes: `\"%s\"`.", ref.root, ref.root)
	}
	roots := append([]string{"var", "local", "each"}, kinds()...)
	return mistake(ref.rng, "Unknown name", "No reference begins with `%s`; references begin with `%s`.%s Put text in quotes.", ref.root,
		strings.Join(roots, "`, `"), DidYouMean(ref.root, roots))
}

// kinds lists the kinds of resources.
func kinds() []string {
	var names []string
	for kind := range resourceShapes {
		names = append(names, string(kind))
	}
	slices.Sort(names)
	return names
}
