package spec

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// VariableValues returns the values of the variables that have one, by name; the sensitive ones are marked.
func (c *Config) VariableValues() []cty.Value {
	var all []cty.Value
	for _, name := range c.Variables() {
		if v, ok := c.evaluator.variables[name]; ok {
			all = append(all, v)
		}
	}
	return all
}

// HasProvider reports whether the files have a block of a provider, whatever mistakes that has.
func (c *Config) HasProvider(ref ProviderRef) bool { return c.providerBlock(ref) != nil }

func (c *Config) providerBlock(ref ProviderRef) *hclsyntax.Block {
	if c.evaluator == nil || c.evaluator.declared == nil {
		return nil
	}
	return c.evaluator.declared.providers[ref.Block()]
}

// UnsetVariables lists the variables without a usable value on which a setting of a provider depends, sorted. If the files
// have no block of the provider, it lists all sensitive ones.
func (c *Config) UnsetVariables(ref ProviderRef, setting string) []string {
	found := map[string]bool{}
	b := c.providerBlock(ref)
	if b != nil {
		c.evaluator.declared.variablesOf(b.Body, setting, found)
	}
	var names []string
	for _, name := range c.Variables() {
		_, set := c.evaluator.variables[name]
		if !set && (found[name] || b == nil && c.evaluator.declared.isSensitive(name)) {
			names = append(names, name)
		}
	}
	return names
}

// IsPublicVariable reports whether the files declare a variable that is not sensitive.
func (c *Config) IsPublicVariable(name string) bool {
	return slices.Contains(c.Variables(), name) && !c.evaluator.declared.isSensitive(name)
}

// SensitiveVariables returns the values of the sensitive variables that have one, by name, without marks.
func (c *Config) SensitiveVariables() map[string]cty.Value {
	all := map[string]cty.Value{}
	for _, name := range c.Variables() {
		if v, ok := c.evaluator.variables[name]; ok && c.evaluator.declared.isSensitive(name) {
			all[name], _ = v.UnmarkDeep()
		}
	}
	return all
}

// isSensitive reports whether a variable block says that its variable is sensitive.
func (d *declarations) isSensitive(variable string) bool {
	a, ok := d.variables[variable].Body.Attributes["sensitive"]
	if !ok {
		return false
	}
	v, diags := evaluate(a.Expr, nil)
	return diags.HasErrors() || !v.RawEquals(cty.False)
}

// variablesOf adds the variables on which an attribute of a block depends to found, those behind locals and for_each
// included.
func (d *declarations) variablesOf(body *hclsyntax.Body, name string, found map[string]bool) {
	seen := map[string]bool{}
	var visit func(hclsyntax.Expression)
	follow := func(a *hclsyntax.Attribute, name string) {
		if a != nil && !seen[name] {
			seen[name] = true
			visit(a.Expr)
		}
	}
	visit = func(expr hclsyntax.Expression) {
		for _, t := range hclsyntax.Variables(expr) {
			switch next := secondName(t); t.RootName() {
			case "var":
				found[next] = true
			case "local":
				follow(d.locals[next], "local."+next)
			case "each":
				follow(body.Attributes["for_each"], "each")
			}
		}
	}
	follow(body.Attributes[name], name)
}

// secondName returns the name after the root of a reference: x of var.x.
func secondName(t hcl.Traversal) string {
	if len(t) < 2 {
		return ""
	}
	step, ok := t[1].(hcl.TraverseAttr)
	if !ok {
		return ""
	}
	return step.Name
}
