package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Move says that the record of From now belongs to To. Addresses without keys stand for whole
// blocks, with all instances.
type Move struct {
	From, To Address
	Range    hcl.Range
}

// Removal says that the object of From is no longer wanted: vmctl destroys it, or releases it and
// leaves it unchanged. A From without a key stands for all instances.
type Removal struct {
	From    Address
	Destroy bool
	Range   hcl.Range
}

// Import gives To an existing object, whoever made it.
type Import struct {
	To    Address
	ID    string // its name in the system, or the system's own identity of it
	Range hcl.Range
}

// stateBlocks reads the moved, removed and import blocks.
func (l *loader) stateBlocks(c *Config, d *declarations) {
	for _, b := range d.stateBlocks {
		switch b.Type {
		case movedShape.Name:
			l.addMove(c, d, b)
		case removedShape.Name:
			l.addRemoval(c, d, b)
		case importShape.Name:
			l.addImport(c, d, b)
		default:
			panic("spec: no state block: " + b.Type)
		}
	}
	l.checkMoves(c)
}

func (l *loader) addMove(c *Config, d *declarations, b *hclsyntax.Block) {
	l.plain(b, movedShape)
	from, hasFrom := l.addressIn(b, "from")
	to, hasTo := l.addressIn(b, "to")
	if !hasFrom || !hasTo {
		return
	}
	_, here := c.Resource(from)
	switch {
	case from == to:
		l.failAt(b, "to", "Moved to itself", "`from` and `to` are both `%s`.", to)
	case from.Kind != to.Kind:
		l.failAt(b, "to", "Moved to another kind", "`%s` cannot become `%s`: an object cannot change its kind.", from, to)
	case d.resources[to.Block()] == nil && !movesOn(d, to):
		l.failAt(b, "to", "Unknown resource", "`%s` is not declared.%s", to.Block(), DidYouMean(to.Name, d.declared(string(to.Kind))))
	case here, from.Key == "" && from.Block() != to.Block() && d.resources[from] != nil:
		l.failAt(b, "from", "Still declared", "`%s` is still declared, so it keeps its record. Remove its block, or this `moved` block.", from)
	default:
		c.Moves = append(c.Moves, Move{From: from, To: to, Range: b.DefRange()})
	}
}

// movesOn reports whether another moved block leads on from an address: it need
// not be declared then.
func movesOn(d *declarations, a Address) bool {
	return slices.ContainsFunc(d.stateBlocks, func(b *hclsyntax.Block) bool {
		from, ok := b.Body.Attributes["from"]
		if !ok || b.Type != movedShape.Name {
			return false
		}
		t, diags := hcl.AbsTraversalForExpr(from.Expr)
		if diags.HasErrors() || len(t) < 2 || t.RootName() != string(a.Kind) || stepName(t[1]) != a.Name {
			return false
		}
		if len(t) == 2 {
			return true
		}
		index, ok := t[2].(hcl.TraverseIndex)
		return ok && a.Key != "" && index.Key.RawEquals(cty.StringVal(a.Key))
	})
}

// checkMoves refuses moves that contradict each other.
func (l *loader) checkMoves(c *Config) {
	from, to := map[Address]Move{}, map[Address]Move{}
	for _, m := range c.Moves {
		if other, ok := from[m.From]; ok {
			l.diags = append(l.diags, mistake(m.Range, "Moved twice", "`%s` is moved to `%s` at %s already.", m.From, other.To, formatRange(other.Range)))
		}
		if other, ok := to[m.To]; ok {
			l.diags = append(l.diags, mistake(m.Range, "Two moves to one address", "`%s` moves to `%s` at %s already.", other.From, m.To, formatRange(other.Range)))
		}
		from[m.From], to[m.To] = m, m
	}
	for _, m := range c.Moves {
		for next, ok := from[m.To]; ok; next, ok = from[next.To] {
			if next.From == m.From || next.To == m.To {
				l.diags = append(l.diags, mistake(m.Range, "Cycle of moves", "The moves from `%s` lead back to it. Remove one of them.", m.From))
				break
			}
		}
	}
}

func (l *loader) addRemoval(c *Config, d *declarations, b *hclsyntax.Block) {
	destroy := l.plain(b, removedShape).GetAttr("destroy")
	from, ok := l.addressIn(b, "from")
	if !ok || !destroy.IsKnown() {
		return
	}
	if _, here := c.Resource(from); here || from.Key == "" && d.resources[from] != nil {
		l.failAt(b, "from", "Still declared", "`%s` is still declared. Remove its block, or this `removed` block.", from)
		return
	}
	if i := slices.IndexFunc(c.Removals, func(r Removal) bool { return r.From == from }); i >= 0 {
		l.failAt(b, "from", "Removed twice", "`%s` is removed at %s already.", from, formatRange(c.Removals[i].Range))
		return
	}
	c.Removals = append(c.Removals, Removal{From: from, Destroy: destroy.True(), Range: b.DefRange()})
}

func (l *loader) addImport(c *Config, d *declarations, b *hclsyntax.Block) {
	id := l.plain(b, importShape).GetAttr("id")
	to, ok := l.addressIn(b, "to")
	if !ok || !id.IsKnown() {
		return
	}
	if strings.TrimSpace(id.AsString()) == "" {
		l.failAt(b, "id", "Invalid id", "`id` of `import` is empty. Write the name that the object has in its system, or the system's own identity of it.")
		return
	}
	r, here := c.Resource(to)
	if !here {
		l.failAt(b, "to", "Unknown resource", "%s", d.notDeclared(c, to))
		return
	}
	this := Import{To: to, ID: id.AsString(), Range: b.DefRange()}
	for _, other := range c.Imports {
		of, _ := c.Resource(other.To)
		switch {
		case other.To == to:
			l.failAt(b, "to", "Imported twice", "`%s` is imported at %s already. Remove one of the blocks.", to, formatRange(other.Range))
			return
		case other.ID == this.ID && of.Address.Kind == to.Kind && c.evaluator.system(of.Provider) == c.evaluator.system(r.Provider):
			l.failAt(b, "id", "Imported twice", "%q becomes `%s` at %s already, and no object is two resources. Remove one of the blocks.", shorten(this.ID), other.To, formatRange(other.Range))
			return
		}
	}
	c.Imports = append(c.Imports, this)
}

// notDeclared returns the message that the address of an import is not declared.
func (d *declarations) notDeclared(c *Config, to Address) string {
	var names, keys []string
	for _, r := range c.Resources {
		names = append(names, r.Address.String())
		if r.Address.Block() == to.Block() && r.Address.Key != "" {
			keys = append(keys, r.Address.Key)
		}
	}
	switch {
	case to.Key == "" && len(keys) > 0:
		return fmt.Sprintf("`%s` has `for_each`, and an object is one of it: write for example `%s[%q]`.", to, to, keys[0])
	case d.resources[to.Block()] != nil && len(keys) == 0 && to.Key != "":
		return fmt.Sprintf("`%s` has no `for_each`: write `%s` without a key.", to.Block(), to.Block())
	case d.resources[to.Block()] != nil && len(keys) > 0:
		return fmt.Sprintf("`%s` has no key %q.%s", to.Block(), shorten(to.Key), keysHint(to.Key, keys))
	default:
		return fmt.Sprintf("`%s` is not in the spec.%s What is imported has to be wanted: write its block first, or have it written by `vmctl import --generate`.", to, DidYouMean(to.String(), names))
	}
}

// plain decodes the attributes of a block that are no addresses. They may refer to nothing.
func (l *loader) plain(b *hclsyntax.Block, shape Block) cty.Value {
	dec := &decoder{ctx: emptyContext(), owner: shape.Name, invalid: map[hclsyntax.Expression]bool{}}
	l.refuseReferences(dec.invalid, b.Body, shape)
	v := dec.block(b.Body, shape, location{rng: b.DefRange()})
	dec.required(b, shape, "")
	l.diags = append(l.diags, dec.diags...)
	return v
}

// addressIn reads an address that is written as a reference.
func (l *loader) addressIn(b *hclsyntax.Block, attr string) (Address, bool) {
	a, ok := b.Body.Attributes[attr]
	if !ok {
		return Address{}, false // another check reports it
	}
	t, diags := hcl.AbsTraversalForExpr(a.Expr)
	if diags.HasErrors() || len(t) < 2 || len(t) > 3 || stepName(t[1]) == "" {
		l.failAt(b, attr, "Invalid address", "Write the address of a resource without quotes, for example `%s = vm.dev` or `%s = vm.web[\"a\"]`.", attr, attr)
		return Address{}, false
	}
	addr := Address{Kind: Kind(t.RootName()), Name: stepName(t[1])}
	if len(t) == 3 {
		if _, dotted := t[2].(hcl.TraverseAttr); dotted {
			l.failAt(b, attr, "Invalid address", "Write the address of the resource alone: `%s = %s`.", attr, addr)
			return Address{}, false
		}
		index, ok := t[2].(hcl.TraverseIndex)
		if !ok || index.Key.Type() != cty.String || index.Key.AsString() == "" {
			l.failAt(b, attr, "Invalid address", "An instance is named by its key, for example `%s[\"a\"]`.", addr)
			return Address{}, false
		}
		addr.Key = index.Key.AsString()
	}
	if _, known := resourceShapes[addr.Kind]; known {
		return addr, true
	}
	l.failAt(b, attr, "Unknown kind", "There is no kind of resource `%s`.", addr.Kind)
	return Address{}, false
}

// failAt reports a mistake at an attribute of a block.
func (l *loader) failAt(b *hclsyntax.Block, attr, summary, format string, args ...any) {
	l.diags = append(l.diags, mistake(b.Body.Attributes[attr].Expr.Range(), summary, format, args...))
}
