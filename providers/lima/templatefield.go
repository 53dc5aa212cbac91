package lima

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"vmctl/spec"
)

// fieldCheck looks for fields of a template that Lima does not know, and for values of another shape than Lima reads.
// Lima itself only logs the first when it loads an instance.
type fieldCheck struct {
	shapes map[string][]string // by path
	flaws  []string
}

// checkFields returns the flaws of a template's fields, in the order of their paths.
func checkFields(doc map[string]any) []string {
	c := fieldCheck{shapes: map[string][]string{"": {"mapping"}}}
	for line := range strings.Lines(templateFields) {
		words := strings.Fields(line)
		c.shapes[words[0]] = words[1:]
	}
	c.value("", "", doc)
	return c.flaws
}

// value checks the value of a field. path names the field for people, pattern is its path in the table.
func (c *fieldCheck) value(path, pattern string, v any) {
	shapes := c.shapes[pattern]
	if v == nil || slices.Contains(shapes, "any") {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if c.has(path, shapes, "mapping") {
			for _, key := range slices.Sorted(maps.Keys(v)) {
				c.member(path, pattern, key, v[key])
			}
		}
	case []any:
		if c.has(path, shapes, "list") {
			for i, element := range v {
				c.value(fmt.Sprintf("%s[%d]", path, i), pattern+"[]", element)
			}
		}
	default:
		c.has(path, shapes, "value")
	}
}

// has reports whether a shape is one of those that a field may have. If not, it adds a flaw.
func (c *fieldCheck) has(path string, shapes []string, shape string) bool {
	if slices.Contains(shapes, shape) {
		return true
	}
	c.flaws = append(c.flaws, fmt.Sprintf("Lima's field `%s` is a %s, not a %s.", path, strings.Join(shapes, " or a "), shape))
	return false
}

// member checks one field of a mapping.
func (c *fieldCheck) member(path, pattern, key string, v any) {
	if path != "" {
		path, pattern = path+".", pattern+"."
	}
	for _, candidate := range []string{pattern + key, pattern + "*"} {
		if _, known := c.shapes[candidate]; known {
			c.value(path+key, candidate, v)
			return
		}
	}
	var others []string
	for known := range c.shapes {
		if name, below := strings.CutPrefix(known, pattern); below && name != "" && !strings.ContainsAny(name, ".[") {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	c.flaws = append(c.flaws, fmt.Sprintf("Lima knows no field `%s`.%s", path+key, spec.DidYouMean(key, others)))
}
