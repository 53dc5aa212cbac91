package spec

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Revealed returns v with its sensitive values as they are, without marks: only for the system that is to
// get them.
func Revealed(v cty.Value) cty.Value {
	if !hasSensitive(v) {
		return v
	}
	v, _ = v.UnmarkDeep()
	return v
}

// Hidden returns v with its sensitive values unknown.
func Hidden(v cty.Value) cty.Value {
	return Replaced(v, func(part cty.Value) cty.Value { return cty.UnknownVal(part.Type()) })
}

// Withheld returns v without its sensitive values: the objects in it lack these attributes.
func Withheld(v cty.Value) cty.Value {
	if !hasSensitive(v) || v.IsMarked() {
		return v
	}
	kept := map[string]cty.Value{}
	for name, part := range v.AsValueMap() {
		if !part.IsMarked() {
			kept[name] = Withheld(part)
		}
	}
	return cty.ObjectVal(kept)
}

// Replaced returns v with other values, without marks, in place of its sensitive ones.
func Replaced(v cty.Value, with func(cty.Value) cty.Value) cty.Value {
	if !hasSensitive(v) {
		return v
	}
	if v.IsMarked() {
		return with(Revealed(v))
	}
	parts := v.AsValueMap()
	for name, part := range parts {
		parts[name] = Replaced(part, with)
	}
	return cty.ObjectVal(parts)
}

// hasSensitive reports whether a value, or an attribute of an object at any depth, is sensitive. An attribute is
// so as a whole, and none in a list of blocks is.
func hasSensitive(v cty.Value) bool {
	switch {
	case v == cty.NilVal:
		return false
	case v.IsMarked():
		return true
	case !v.Type().IsObjectType() || !v.IsKnown() || v.IsNull():
		return false
	}
	for name := range v.Type().AttributeTypes() {
		if hasSensitive(v.GetAttr(name)) {
			return true
		}
	}
	return false
}

// Has reports whether an object has an attribute at a dotted path.
func Has(v cty.Value, path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	if v == cty.NilVal || !v.IsKnown() || v.IsNull() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return false
	}
	return !deeper || Has(v.GetAttr(name), rest)
}

// SensitiveValue is a sensitive attribute of an object.
type SensitiveValue struct {
	Path  string    // dotted
	Value cty.Value // without marks; it may be unknown
}

// SensitiveValues lists the sensitive attributes of an object, by path.
func SensitiveValues(v cty.Value) []SensitiveValue { return sensitiveBelow("", v) }

func sensitiveBelow(path string, v cty.Value) []SensitiveValue {
	switch {
	case !hasSensitive(v):
		return nil
	case v.IsMarked():
		return []SensitiveValue{{path, Revealed(v)}}
	}
	var all []SensitiveValue
	for _, name := range sortedKeys(v) {
		all = append(all, sensitiveBelow(joinPath(path, name), v.GetAttr(name))...)
	}
	return all
}

// SensitivePaths lists the attributes of a kind that may be sensitive.
func SensitivePaths(kind Kind) []string { return resourceShapes[kind].sensitivePaths("") }

// SensitiveSettings lists the attributes of a type of provider that may be sensitive.
func SensitiveSettings(typ string) []string { return providerShapes[typ].sensitivePaths("") }

func (b Block) sensitivePaths(path string) []string {
	var all []string
	for _, a := range b.Attrs {
		if a.Sensitive {
			all = append(all, joinPath(path, a.Name))
		}
	}
	for _, nested := range b.Blocks {
		all = append(all, nested.sensitivePaths(joinPath(path, nested.Name))...)
	}
	return all
}

// Texts lists the sensitive texts in a value, sorted.
func Texts(v cty.Value) []string {
	if !hasSensitive(v) {
		return nil
	}
	all := map[string]bool{}
	collectSecrets(v, all, false)
	return sortedSet(all)
}

// Secrets lists the sensitive texts of the spec, sorted: the values of variables, each line of such a value, and every
// sensitive value that the spec derives from them. It leaves out values that need a computed attribute.
func (c *Config) Secrets() []string {
	e := c.evaluator
	if e == nil || e.base == nil {
		return nil
	}
	all := map[string]bool{}
	for _, v := range e.variables {
		of := map[string]bool{}
		collectSecrets(v, of, false)
		for text := range of {
			all[text] = true
			for line := range strings.Lines(text) {
				all[strings.TrimSpace(line)] = true
			}
		}
	}
	for _, n := range e.order {
		r := e.base.result(n)
		if n.resource == nil {
			collectSecrets(r.value, all, false)
		}
		for _, i := range r.instances {
			if !i.resource.Plain {
				collectSecrets(i.resource.Want, all, false)
			}
		}
	}
	for _, p := range e.providers {
		collectSecrets(p.Attrs, all, false)
	}
	delete(all, "")
	return sortedSet(all)
}

func sortedSet(all map[string]bool) []string {
	texts := make([]string, 0, len(all))
	for text := range all {
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return texts
}
