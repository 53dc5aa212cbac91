package spec

import (
	"bytes"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// Format returns src in the canonical layout. It only changes spaces: comments and everything
// that has a meaning stay. Source that does not parse is returned as it is, with diagnostics.
func Format(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	if _, diags := parseSource(src, filename); diags.HasErrors() {
		return src, sortUnique(diags)
	}
	return hclwrite.Format(src), nil
}

// FormatValue writes the value of an attribute, by its path, for people: sizes
// with IEC units, durations like 30s, a digest by its first digits, a plain word
// bare and any other text quoted. A sensitive value is never written. The text
// may hold what its value holds, control characters too.
func FormatValue(kind Kind, path string, v cty.Value) string {
	switch {
	case v == cty.NilVal:
		return "none"
	case v.IsMarked():
		return "(sensitive)"
	case !v.IsKnown():
		return "(known later)"
	case v.IsNull():
		return "none"
	}
	t := v.Type()
	switch {
	case t == cty.String:
		return formatText(v.AsString())
	case t == cty.Number:
		return formatNumber(kind, path, v.AsBigFloat())
	case t == cty.Bool:
		return strconv.FormatBool(v.True())
	case t.IsObjectType() || t.IsMapType():
		return formatObject(kind, path, v)
	case v.CanIterateElements():
		return formatList(kind, path, v)
	default:
		return "(" + t.FriendlyName() + ")"
	}
}

func formatText(s string) string {
	switch {
	case len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "":
		return s[:12] + "..."
	case s == "" || strings.ContainsAny(s, " \t\n\"'{}[](),") || s == "none":
		return strconv.Quote(s)
	default:
		return s
	}
}

func formatNumber(kind Kind, path string, n *big.Float) string {
	whole, accuracy := n.Int64()
	attr, known := AttrAt(kind, path)
	if !known || accuracy != big.Exact {
		return FormatNumber(n)
	}
	switch attr.Unit {
	case Bytes:
		return FormatSize(whole)
	case Duration:
		return FormatDuration(whole)
	case Plain:
		return strconv.FormatInt(whole, 10)
	}
	panic("unknown unit " + string(attr.Unit))
}

func formatObject(kind Kind, path string, v cty.Value) string {
	m := v.AsValueMap()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if part := m[name]; !part.IsKnown() || !part.IsNull() {
			parts = append(parts, name+" "+FormatValue(kind, path+"."+name, part))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func formatList(kind Kind, path string, v cty.Value) string {
	var parts []string
	for it := v.ElementIterator(); it.Next(); {
		_, element := it.Element()
		parts = append(parts, FormatValue(kind, path, element))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// maxNumberBits bounds the numbers whose digits are written down one by one:
// the time that takes grows with the square of their number.
const maxNumberBits = 4096

// FormatNumber writes a number with every digit, as JSON reads it, too. Of a number beyond 4096
// bits it writes the first digits and the power of ten.
func FormatNumber(n *big.Float) string {
	if !huge(n) {
		return n.Text('f', -1)
	}
	mantissa := new(big.Float)
	exponent := n.MantExp(mantissa)
	m, _ := mantissa.Float64()
	log := math.Log10(math.Abs(m)) + float64(exponent)*math.Log10(2)
	power := math.Floor(log)
	digits := math.Copysign(math.Pow(10, log-power), m)
	return strconv.FormatFloat(digits, 'f', 6, 64) + "e" + strconv.FormatFloat(power, 'f', 0, 64)
}

// huge reports whether the digits of a number are too many to write down.
func huge(n *big.Float) bool {
	if n.IsInf() || n.Sign() == 0 {
		return false
	}
	exponent := n.MantExp(nil)
	return exponent > maxNumberBits || exponent < -maxNumberBits
}
