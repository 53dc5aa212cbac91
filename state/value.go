package state

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// checkStorable names the first part of v that must not be written. It never shows a
// value: that could be a secret.
func checkStorable(v cty.Value) error {
	unmarked, marks := v.UnmarkDeepWithPaths()
	if len(marks) > 0 {
		return fmt.Errorf("%s is marked: the state holds no such value, only its digest", dotted(marks[0].Path))
	}
	if unmarked.IsWhollyKnown() {
		return nil
	}
	var path cty.Path
	err := cty.Walk(unmarked, func(p cty.Path, part cty.Value) (bool, error) {
		if path == nil && !part.IsKnown() {
			path = p.Copy()
		}
		return path == nil, nil
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is not known yet: the state holds only what is", dotted(path))
}

// dotted writes a path as a spec does: boot.kernel, port_forward[0].guest.
func dotted(path cty.Path) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			b.WriteString("." + step.Name)
		case cty.IndexStep:
			b.WriteString("[" + key(step.Key) + "]")
		}
	}
	if b.Len() == 0 {
		return "the value"
	}
	return strings.TrimPrefix(b.String(), ".")
}

func key(k cty.Value) string {
	switch {
	case k.IsMarked() || !k.IsKnown() || k.IsNull():
		return "…"
	case k.Type() == cty.String:
		return strconv.Quote(k.AsString())
	case k.Type() == cty.Number:
		return k.AsBigFloat().Text('f', -1)
	default:
		return "…"
	}
}
