package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// evaluator holds everything that is needed to evaluate resources again after Load. It does not
// change after Load, except for the cache of digests, which has a lock.
type evaluator struct {
	in        Inputs
	declared  *declarations
	files     *folder
	sources   map[string]*hcl.File
	functions map[string]function.Function
	variables map[string]cty.Value // marked where sensitive
	failed    map[string]bool      // variables without a usable value
	nodes     map[nodeName]*node
	order     []*node // each node after the nodes that it needs
	outputs   []*node // by name
	checks    []*rule // of check blocks, by name
	providers map[ProviderRef]Provider
	systems   map[ProviderRef]string // the key of the system that each of them leads to
	base      *evaluation            // as Load evaluated it
}

// node is a local, a resource or an output in the graph of references. Only locals and resources
// are referred to.
type node struct {
	name     nodeName
	rng      hcl.Range
	refs     []reference
	targets  []target
	invalid  map[hclsyntax.Expression]bool // expressions that refer to nothing: reported once, not evaluated
	index    int                           // in evaluator.order
	cyclic   bool
	referred bool                 // a node refers to its value
	expr     hclsyntax.Expression // of a local or an output
	resource *resourceBlock       // of a resource
	// sensitive says that an output may hold sensitive values.
	sensitive bool
}

// target is one name that a node refers to.
type target struct {
	nodeName
	keys map[string]bool // the instances that it names; nil: any
	// attrs says that attributes are read which are not computed.
	attrs bool
}

// result holds the value or the instances of an evaluated node.
type result struct {
	value     cty.Value  // of a local or an output
	pending   bool       // value, or the Want or Policy of an instance, is not wholly known
	instances []instance // by key
	items     []item     // of for_each, where they are wholly known
	uses      []Address  // the resources that it needs, sorted
	// invalid says that a mistake was reported, here or in a node that this one needs. A value
	// may be unknown for that reason alone.
	invalid bool
}

// evaluation holds one evaluation of the spec. In the base evaluation no computed attribute is
// known.
type evaluation struct {
	*evaluator
	computed map[Address]cty.Value // Record.Values by address
	observed map[Address]cty.Value // attributes of objects, which count before those of the spec; nil: none do
	results  map[*node]*result
	diags    hcl.Diagnostics
}

func (e *evaluator) newEvaluation(computed map[Address]cty.Value) *evaluation {
	return &evaluation{evaluator: e, computed: computed, results: map[*node]*result{}}
}

// result returns the result of a node in this evaluation, else in the base.
func (w *evaluation) result(n *node) *result {
	if r, ok := w.results[n]; ok {
		return r
	}
	if w.base != nil {
		if r, ok := w.base.results[n]; ok {
			return r
		}
	}
	return &result{value: cty.DynamicVal, invalid: true}
}

// evaluate evaluates n. If only is not "", it evaluates only the instance with that key of a
// resource.
func (w *evaluation) evaluate(n *node, only string) *result {
	r := &result{value: cty.DynamicVal, invalid: n.cyclic || len(n.invalid) > 0}
	w.results[n] = r
	for _, t := range n.targets {
		r.invalid = r.invalid || w.isInvalid(t.nodeName)
	}
	ctx := w.context(n)
	before := len(w.diags)
	defer func() { w.explainKeys(n, w.diags[before:]) }()
	if n.resource != nil {
		w.evaluateResource(n, r, ctx, only)
		return r
	}
	r.uses = w.usesOf(n, ctx)
	if n.invalid[n.expr] || n.cyclic {
		return r
	}
	value, diags := evaluate(n.expr, ctx)
	w.diags = append(w.diags, diags...)
	var size measured
	if !diags.HasErrors() {
		size = measure(value)
	}
	large := size.tooLarge()
	if large && !r.invalid {
		w.diags = append(w.diags, mistake(n.expr.Range(), "Value too large",
			"`%s` is larger than %s. Shorten it, or move its content into a file.", n.name, FormatSize(maxValueBytes)))
	}
	if large || diags.HasErrors() {
		r.invalid = true
		return r
	}
	r.value, r.pending = value, size.pending
	return r
}

// explainKeys rewrites diagnostics about a key that a resource does not have: they name the keys
// that it has.
func (w *evaluation) explainKeys(n *node, diags hcl.Diagnostics) {
	for _, d := range diags {
		for _, ref := range n.refs {
			if ref.key == "" || d.Subject == nil || d.Summary != "Invalid index" || !ref.rng.Overlaps(*d.Subject) {
				continue
			}
			var keys []string
			for _, i := range w.result(w.nodes[ref.target()]).instances {
				keys = append(keys, i.resource.Address.Key)
			}
			if slices.Contains(keys, ref.key) {
				continue
			}
			d.Summary = "Unknown key"
			d.Detail = fmt.Sprintf("`%s` has no key %q.%s", ref.target(), shorten(ref.key), keysHint(ref.key, keys))
		}
	}
}

func keysHint(key string, keys []string) string {
	const most = 10
	switch hint := DidYouMean(key, keys); {
	case len(keys) == 0:
		return " It has none."
	case hint != "" || len(keys) > most:
		return hint
	default:
		return " It has " + strings.ReplaceAll(quoted(keys), " or ", " and ") + "."
	}
}

// isInvalid reports whether a mistake was reported in a node or in one that it needs.
func (w *evaluation) isInvalid(n nodeName) bool {
	if n.root == "var" {
		return w.failed[n.name]
	}
	return w.result(w.nodes[n]).invalid
}

// context returns the values of the names that n refers to, and no others.
func (w *evaluation) context(n *node) *hcl.EvalContext {
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{}, Functions: w.functions}
	roots := map[string]map[string]cty.Value{}
	for _, t := range n.targets {
		if roots[t.root] == nil {
			roots[t.root] = map[string]cty.Value{}
		}
		roots[t.root][t.name] = w.value(t)
	}
	for root, values := range roots {
		ctx.Variables[root] = cty.ObjectVal(values)
	}
	return ctx
}

// value returns the value that a reference to t has.
func (w *evaluation) value(t target) cty.Value {
	switch t.root {
	case "var":
		if v, ok := w.variables[t.name]; ok {
			return v
		}
		return cty.DynamicVal
	case "local":
		return w.result(w.nodes[t.nodeName]).value
	default:
		return w.resourceValue(w.nodes[t.nodeName], t.keys)
	}
}

// usesOf lists the resources that n refers to, directly or through locals. An index that ctx can
// evaluate narrows a reference down to one instance. A reference in the value of one item of a
// for_each counts for the instance of that item alone.
func (w *evaluation) usesOf(n *node, ctx *hcl.EvalContext) []Address {
	uses := map[Address]bool{}
	for _, ref := range n.refs {
		switch {
		case ref.root == "var", ref.root == "each", ref.isOfAnother(ctx):
		case ref.root == "local":
			for _, addr := range w.result(w.nodes[ref.target()]).uses {
				uses[addr] = true
			}
		default:
			w.addUses(uses, ref, ctx)
		}
	}
	return sortedAddresses(uses)
}

func (w *evaluation) addUses(uses map[Address]bool, ref reference, ctx *hcl.EvalContext) {
	key := ref.key
	if found, ok := keyIn(ref.keyExpr, ctx); ok {
		key = found
	}
	r := w.result(w.nodes[ref.target()])
	if key != "" {
		if i := r.instance(key); i != nil {
			uses[i.resource.Address] = true
		}
		return
	}
	for _, i := range r.instances {
		uses[i.resource.Address] = true
	}
}

// instance returns the instance with a key, nil if there is none.
func (r *result) instance(key string) *instance {
	i, ok := slices.BinarySearchFunc(r.instances, key, func(i instance, key string) int { return strings.Compare(i.resource.Address.Key, key) })
	if !ok {
		return nil
	}
	return &r.instances[i]
}

// isOfAnother reports whether a reference stands in the value of another item of a for_each than
// the item of ctx.
func (r reference) isOfAnother(ctx *hcl.EvalContext) bool {
	key, ok := keyIn(r.item, ctx)
	each, inside := ctx.Variables["each"]
	if !ok || !inside {
		return false
	}
	own := each.GetAttr("key")
	return own.IsKnown() && own.AsString() != key
}

// keyIn evaluates a key. An error is reported where the whole expression is evaluated.
func keyIn(expr hclsyntax.Expression, ctx *hcl.EvalContext) (string, bool) {
	if expr == nil {
		return "", false
	}
	v, diags := evaluate(expr, ctx)
	v, _ = v.Unmark()
	if diags.HasErrors() || !v.IsKnown() || v.IsNull() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

func sortedAddresses(set map[Address]bool) []Address {
	list := make([]Address, 0, len(set))
	for addr := range set {
		list = append(list, addr)
	}
	slices.SortFunc(list, Address.Compare)
	return list
}
