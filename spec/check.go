package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// CheckKind is the kind of block that a condition stands in.
type CheckKind string

// The kinds of blocks with a condition.
const (
	Assert        CheckKind = "assert"        // of a check block
	Precondition  CheckKind = "precondition"  // of a resource: must hold before its object is changed
	Postcondition CheckKind = "postcondition" // of a resource: must hold once its object was changed
)

// CheckStatus is the result of a condition.
type CheckStatus string

// The results of conditions.
const (
	CheckPasses  CheckStatus = "pass"
	CheckFails   CheckStatus = "fail"
	CheckUnknown CheckStatus = "unknown" // it needs a value that is not known yet
	CheckError   CheckStatus = "error"   // it cannot be evaluated
)

// CheckBlock is the kind in the address of a check block: check.NAME. No resource has it.
const CheckBlock = "check"

// Check is one condition of a check block or of a resource, evaluated.
type Check struct {
	Address Address // of the resource; of a check block: check.NAME
	Kind    CheckKind
	Index   int // among the blocks of its kind in the block around it, from 0
	Status  CheckStatus
	// Message is its error message if it fails, or the reason why it cannot be evaluated. It holds no
	// sensitive value.
	Message string
	Range   hcl.Range // of the condition
}

// IsBad reports whether the condition is false, or cannot be evaluated.
func (c Check) IsBad() bool { return c.Status == CheckFails || c.Status == CheckError }

// String names the condition: check.health, or the precondition of vm.dev.
func (c Check) String() string {
	if c.Kind == Assert {
		return c.Address.String()
	}
	return fmt.Sprintf("the %s of %s", c.Kind, c.Address)
}

// rule is a condition as it stands in a file.
type rule struct {
	*node // the references of both expressions; name and place of the block around the rule

	kind      CheckKind
	index     int
	condition hclsyntax.Expression
	message   hclsyntax.Expression
}

// checkRules reads the check blocks.
func (l *loader) checkRules(e *evaluator) {
	for _, label := range sortedNames(e.declared.checks) {
		b := e.declared.checks[label]
		name := nodeName{CheckBlock, label}
		dec := &decoder{ctx: emptyContext(), owner: name.String(), invalid: map[hclsyntax.Expression]bool{}}
		dec.block(b.Body, checkShape, location{rng: b.DefRange()})
		if len(b.Body.Blocks) == 0 {
			dec.add(mistake(b.DefRange(), "Missing block", "`%s` needs at least one `assert { … }`.", name))
		}
		l.diags = append(l.diags, dec.diags...)
		e.checks = append(e.checks, l.rules(e, scope{owner: name}, b.Body)...)
	}
	for _, r := range e.checks {
		e.refer(r.node)
	}
}

// rules reads the assert, precondition and postcondition blocks of a body.
func (l *loader) rules(e *evaluator, in scope, body *hclsyntax.Body) []*rule {
	var all []*rule
	index := map[CheckKind]int{}
	for _, b := range body.Blocks {
		kind := CheckKind(b.Type)
		if kind != Assert && kind != Precondition && kind != Postcondition {
			continue
		}
		in.self = kind == Postcondition
		r := &rule{node: &node{name: in.owner, rng: b.DefRange()}, kind: kind, index: index[kind]}
		index[kind]++
		condition, message := b.Body.Attributes["condition"], b.Body.Attributes["error_message"]
		if condition == nil || message == nil { // which is reported
			continue
		}
		r.condition, r.message = condition.Expr, message.Expr
		l.addReferences(e.declared, r.node, in, r.condition, r.message)
		all = append(all, r)
	}
	return all
}

// lifecycleRules reads the conditions of a resource block.
func (l *loader) lifecycleRules(e *evaluator, n *node) {
	for _, b := range n.resource.Body.Blocks {
		if b.Type == lifecycleBlock.Name {
			in := scope{owner: n.name, each: n.resource.forEach != nil}
			n.resource.rules = append(n.resource.rules, l.rules(e, in, b.Body)...)
		}
	}
	n.referred = slices.ContainsFunc(n.resource.rules, func(r *rule) bool { return r.kind == Postcondition })
}

// checkConditions reports conditions and messages of the wrong type, and messages that would show
// something sensitive, as far as they are known before anything is observed.
func (l *loader) checkConditions(e *evaluator) {
	for _, r := range e.checks {
		_, diags := e.base.check(r, nil, Address{Kind: CheckBlock, Name: r.name.name})
		l.diags = append(l.diags, diags...)
	}
	for _, n := range e.order {
		if n.resource == nil {
			continue
		}
		result := e.base.result(n)
		for i := range result.instances {
			for _, r := range n.resource.rules {
				_, diags := e.base.check(r, result, result.instances[i].resource.Address)
				l.diags = append(l.diags, diags...)
			}
		}
	}
}

// check evaluates a condition. of holds the instances of the resource that it belongs to; nil: it
// belongs to a check block.
func (w *evaluation) check(r *rule, of *result, addr Address) (Check, hcl.Diagnostics) {
	c := Check{Address: addr, Kind: r.kind, Index: r.index, Status: CheckUnknown, Range: r.condition.Range()}
	if len(r.invalid) > 0 || r.cyclic || of != nil && of.invalid {
		return c, nil
	}
	ctx := w.contextOf(r, of, addr)
	held, diags := evaluate(r.condition, ctx)
	w.explainKeys(r.node, diags)
	said, more := evaluate(r.message, ctx)
	w.explainKeys(r.node, more)
	held, _ = held.UnmarkDeep()
	verdict, err := convert.Convert(held, cty.Bool)
	if !diags.HasErrors() && (err != nil || verdict.IsKnown() && verdict.IsNull()) {
		diags = append(diags, mistake(r.condition.Range(), "Invalid condition", "A condition must be true or false; this one is neither."))
	}
	secret := said.ContainsMarked()
	said, _ = said.UnmarkDeep()
	text, err := convert.Convert(said, cty.String)
	switch {
	case more.HasErrors():
	case secret:
		more = append(more, mistake(r.message.Range(), "Sensitive value", "The `error_message` of %s contains a sensitive value, which is never shown. Leave that value out.", r.owner()))
	case err != nil || text.IsKnown() && text.IsNull():
		more = append(more, mistake(r.message.Range(), "Invalid error message", "An `error_message` must be a text."))
	}
	switch {
	case diags.HasErrors():
		c.Status, c.Message = CheckError, firstError(diags)
	case !verdict.IsKnown():
	case verdict.True():
		c.Status = CheckPasses
	case secret:
		c.Status, c.Message = CheckFails, "its error_message is not shown: it contains a sensitive value"
	case more.HasErrors():
		c.Status, c.Message = CheckFails, "its error_message cannot be evaluated: "+firstError(more)
	case !text.IsKnown():
		c.Status, c.Message = CheckFails, "its error_message is known after apply"
	default:
		c.Status, c.Message = CheckFails, strings.TrimSpace(text.AsString())
	}
	return c, append(diags, more...)
}

// owner names the block of a rule for a message.
func (r *rule) owner() string {
	if r.kind == Assert {
		return "`" + r.name.String() + "`"
	}
	return fmt.Sprintf("a %s of `%s`", r.kind, r.name)
}

func firstError(diags hcl.Diagnostics) string {
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			return d.Summary + ": " + d.Detail
		}
	}
	return ""
}

// contextOf returns the values of the names that a condition refers to, those of each and self for one instance included. of: as
// for check.
func (w *evaluation) contextOf(r *rule, of *result, addr Address) *hcl.EvalContext {
	if of == nil {
		return w.context(r.node)
	}
	n := w.nodes[r.name]
	it := instanceInput{item: item{Key: addr.Key, value: cty.DynamicVal}, each: n.resource.forEach != nil}
	if i := slices.IndexFunc(of.items, func(known item) bool { return known.Key == addr.Key }); i >= 0 {
		it.item = of.items[i]
	}
	named := *r.node
	named.targets = w.narrowed(r.node, it.context(&hcl.EvalContext{Functions: w.functions}))
	ctx := it.context(w.context(&named))
	if i := of.instance(addr.Key); r.kind == Postcondition && i != nil {
		ctx = ctx.NewChild()
		ctx.Variables = map[string]cty.Value{"self": w.objectOf(n, *i)}
	}
	return ctx
}

// narrowed returns the targets of a node with the instances that it names by the values of each in ctx: the conditions of a
// thousand instances, each about one of a thousand others, make no million values.
func (w *evaluation) narrowed(n *node, ctx *hcl.EvalContext) []target {
	targets := slices.Clone(n.targets)
	for i, t := range targets {
		if m := w.nodes[t.nodeName]; t.keys != nil || m == nil || m.resource == nil || m.resource.forEach == nil {
			continue
		}
		keys, all := map[string]bool{}, true
		for _, ref := range n.refs {
			if ref.target() != t.nodeName {
				continue
			}
			key, known := ref.key, ref.key != ""
			if !known {
				key, known = keyIn(ref.keyExpr, ctx)
			}
			keys[key], all = true, all && known
		}
		if all {
			targets[i].keys = keys
		}
	}
	return targets
}

// Checks evaluates the conditions of the check blocks, then those of the resources, each sorted.
// values holds, by address, the values of objects: only their computed attributes are used.
func (c *Config) Checks(values map[Address]cty.Value) []Check {
	return c.checks(values, nil)
}

// ObservedChecks evaluates the conditions as Checks does, but with the attributes that objects really
// have in place of those that the files say.
func (c *Config) ObservedChecks(values map[Address]cty.Value) []Check {
	return c.checks(values, values)
}

func (c *Config) checks(values, observed map[Address]cty.Value) []Check {
	e := c.evaluator
	if e == nil || e.base == nil {
		return nil
	}
	w := e.newEvaluation(values)
	w.observed = observed
	var all []Check
	for _, r := range e.checks {
		w.prepare(r.node)
		one, _ := w.check(r, nil, Address{Kind: CheckBlock, Name: r.name.name}) //nolint:errcheck // the check holds its own mistakes
		all = append(all, one)
	}
	for i := range c.Resources {
		all = append(all, c.conditions(w, c.Resources[i].Address, "")...)
	}
	return all
}

// Conditions evaluates the preconditions and postconditions of one resource, as Checks does.
func (c *Config) Conditions(addr Address, values map[Address]cty.Value) []Check {
	if c.evaluator == nil || c.evaluator.base == nil {
		return nil
	}
	return c.conditions(c.evaluator.newEvaluation(values), addr, addr.Key)
}

// conditions evaluates the conditions of one resource. only is the key of the one instance that has to be evaluated anew; "": all
// of them.
func (c *Config) conditions(w *evaluation, addr Address, only string) []Check {
	n := w.nodes[nodeName{string(addr.Kind), addr.Name}]
	if n == nil || n.resource == nil || len(n.resource.rules) == 0 || c.recorded[addr] {
		return nil
	}
	var all []Check
	for _, r := range n.resource.rules {
		w.prepare(n, r.node)
		if _, done := w.results[n]; !done && w.base.result(n).pending {
			w.evaluate(n, only)
		}
		one, _ := w.check(r, w.result(n), addr) //nolint:errcheck // the check holds its own mistakes
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b Check) int { return cmp.Compare(b.Kind, a.Kind) }) // preconditions first
	return all
}
