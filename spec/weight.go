package spec

import "github.com/zclconf/go-cty/cty"

// maxValueBytes bounds a value: its texts in bytes, and for each part a little. A
// few lines that double each other would fill all memory.
const maxValueBytes = 64 << 20

// tooLarge reports whether a value is larger than maxWeight, looking no further
// than that.
func tooLarge(v cty.Value) bool {
	left := maxValueBytes
	return measure(v, &left)
}

func measure(v cty.Value, left *int) bool {
	const part = 64 // less than any part takes
	v, _ = v.Unmark()
	*left -= part
	switch {
	case *left < 0:
		return true
	case !v.IsKnown() || v.IsNull():
		return false
	case v.Type() == cty.String:
		*left -= len(v.AsString())
		return *left < 0
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			if _, element := it.Element(); measure(element, left) {
				return true
			}
		}
	}
	return false
}
