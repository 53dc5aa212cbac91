package spec

import "fmt"

// LabelOf returns a label for any text, such as a branch, of which no other text has the same: letters, digits and
// hyphens stay, a slash becomes two underscores, and every other byte an underscore with its two hexadecimal digits. So
// does a digit or a hyphen with which a label must not begin.
func LabelOf(text string) string {
	if text == "" {
		return "_"
	}
	var label []byte
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', i > 0 && (c >= '0' && c <= '9' || c == '-'):
			label = append(label, c)
		case c == '/':
			label = append(label, "__"...)
		default:
			label = fmt.Appendf(label, "_%02x", c)
		}
	}
	return string(label)
}
