package spec

// evaluateAll evaluates every node in order.
func (l *loader) evaluateAll(e *evaluator) {
	base := e.newEvaluation(nil)
	e.base = base
	for _, n := range e.order {
		base.evaluate(n, "")
	}
	for _, n := range e.outputs {
		base.evaluate(n, "")
		l.checkOutput(base, n)
	}
	l.diags = append(l.diags, base.diags...)
}

// checkDuplicateNames reports resources of one kind that would have the same name in one
// system.
func (l *loader) checkDuplicateNames(c *Config) {
	type claim struct {
		system, name string
		kind         Kind
	}
	taken := map[claim]Address{}
	for _, r := range c.Resources {
		if !r.Want.Type().HasAttribute("name") {
			continue
		}
		chosen := r.Want.GetAttr("name")
		if !chosen.IsKnown() || chosen.IsNull() {
			continue
		}
		key := claim{c.evaluator.system(r.Provider), chosen.AsString(), r.Address.Kind}
		other, ok := taken[key]
		if !ok {
			taken[key] = r.Address
			continue
		}
		l.diags = append(l.diags, mistake(r.Range, "Name taken twice",
			"`%s` and `%s` would both be named %q. Give each its own `name`, with `each.key` in it where there is `for_each`, or leave it out.",
			other, r.Address, chosen.AsString()))
	}
}
