package state

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Values are stored as plain JSON: objects, lists and exact numbers, without their types. The
// reader decodes them by the types of its build, and keeps the JSON that these cannot represent.

// appendPlain appends v as JSON to text. It fails if v is marked or not wholly known.
func appendPlain(text []byte, v cty.Value) ([]byte, error) {
	switch {
	case v.IsMarked() || !v.IsKnown():
		return nil, errors.New("a value is marked or not known")
	case v.IsNull():
		return append(text, "null"...), nil
	}
	switch t := v.Type(); {
	case t == cty.String:
		return appendText(text, v.AsString())
	case t == cty.Number:
		return appendNumber(text, v.AsBigFloat())
	case t == cty.Bool:
		return strconv.AppendBool(text, v.True()), nil
	case t.IsObjectType(), t.IsMapType():
		return appendMembers(text, v)
	case t.IsListType(), t.IsSetType(), t.IsTupleType():
		return appendElements(text, v)
	default:
		return nil, fmt.Errorf("a value of type %s cannot be written", t.FriendlyName())
	}
}

func appendText(text []byte, s string) ([]byte, error) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			quoted, err := encode(s)
			return append(text, quoted...), err
		}
	}
	return append(append(append(text, '"'), s...), '"'), nil
}

func appendNumber(text []byte, n *big.Float) ([]byte, error) {
	if n.IsInf() {
		return nil, errors.New("an infinite number cannot be written")
	}
	if small, accuracy := n.Int64(); accuracy == big.Exact {
		return strconv.AppendInt(text, small, 10), nil
	}
	if n.IsInt() {
		whole, _ := n.Int(nil)
		return whole.Append(text, 10), nil
	}
	return n.Append(text, 'g', -1), nil
}

func appendMembers(text []byte, v cty.Value) ([]byte, error) {
	all := v.AsValueMap()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	text = append(text, '{')
	for i, name := range names {
		if i > 0 {
			text = append(text, ',')
		}
		var err error
		if text, err = appendText(text, name); err != nil {
			return nil, err
		}
		if text, err = appendPlain(append(text, ':'), all[name]); err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

func appendElements(text []byte, v cty.Value) ([]byte, error) {
	text = append(text, '[')
	first := true
	for it := v.ElementIterator(); it.Next(); first = false {
		if !first {
			text = append(text, ',')
		}
		_, e := it.Element()
		var err error
		if text, err = appendPlain(text, e); err != nil {
			return nil, err
		}
	}
	return append(text, ']'), nil
}

// readPlain decodes JSON as a value of type t. An attribute that the JSON lacks is missing in the
// value, too. whole reports whether writing the value gives the same JSON: that is not so if t
// lacks an attribute or has another type for it.
func (c *cutter) readPlain(text []byte, t cty.Type) (v cty.Value, whole bool, err error) {
	if string(text) == "null" {
		return cty.NullVal(t), true, nil
	}
	switch {
	case t.IsObjectType():
		return c.readObject(text, t)
	case t.IsMapType():
		return c.readMap(text, t.ElementType())
	case t.IsListType(), t.IsSetType():
		return c.readSequence(text, t)
	default:
		return readPrimitive(text, t)
	}
}

func readPrimitive(text []byte, t cty.Type) (v cty.Value, whole bool, err error) {
	if v, err = primitiveOf(text); err != nil {
		return cty.NilVal, false, err
	}
	if t != cty.DynamicPseudoType && v.Type() != t {
		v, err = convert.Convert(v, t)
		return v, false, err
	}
	again, err := appendPlain(nil, v)
	return v, err == nil && string(again) == string(text), err
}

// primitiveOf reads a text, a number, a truth value, or a value whose type JSON alone decides.
func primitiveOf(text []byte) (cty.Value, error) {
	switch {
	case len(text) == 0:
		return cty.NilVal, errors.New("a value is empty")
	case text[0] == '"':
		s, err := jsontext.AppendUnquote(nil, text)
		if err != nil && !utf8.Valid(text) { // as encoding/json does it
			err = nil
		}
		return cty.StringVal(string(s)), plainError(err)
	case string(text) == "true":
		return cty.True, nil
	case string(text) == "false":
		return cty.False, nil
	case text[0] == '-' || text[0] >= '0' && text[0] <= '9':
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil { // what nearly all are, and much cheaper
			return cty.NumberIntVal(n), nil
		}
		return cty.ParseNumberVal(string(text))
	default:
		t, err := ctyjson.ImpliedType(text)
		if err != nil {
			return cty.NilVal, err
		}
		return ctyjson.Unmarshal(text, t)
	}
}

func (c *cutter) readObject(text []byte, t cty.Type) (v cty.Value, whole bool, err error) {
	all, err := c.members(text)
	if err != nil {
		return cty.NilVal, false, plainError(err)
	}
	types := t.AttributeTypes()
	whole = true
	values := make(map[string]cty.Value, len(all))
	for name, raw := range all {
		at, known := types[name]
		if !known {
			whole = false
			continue
		}
		value, exact, err := c.readPlain(raw, at)
		whole = whole && exact && err == nil
		if err == nil {
			values[name] = value
		}
	}
	return cty.ObjectVal(values), whole, nil
}

func (c *cutter) readMap(text []byte, element cty.Type) (v cty.Value, whole bool, err error) {
	all, err := c.members(text)
	if err != nil {
		return cty.NilVal, false, plainError(err)
	}
	if len(all) == 0 {
		return cty.MapValEmpty(element), true, nil
	}
	whole = true
	values := make(map[string]cty.Value, len(all))
	for name, raw := range all {
		value, exact, err := c.readPlain(raw, element)
		if err != nil {
			return cty.NilVal, false, err
		}
		values[name], whole = value, whole && exact
	}
	if element.IsObjectType() || !alike(slices.Collect(mapValues(values))) { // blocks by their labels are an object
		return cty.ObjectVal(values), whole, nil
	}
	return cty.MapVal(values), whole, nil
}

func mapValues(all map[string]cty.Value) func(func(cty.Value) bool) {
	return func(yield func(cty.Value) bool) {
		for _, v := range all {
			if !yield(v) {
				return
			}
		}
	}
}

// readSequence reads a list or a set. Elements that lack different attributes make a tuple.
func (c *cutter) readSequence(text []byte, t cty.Type) (v cty.Value, whole bool, err error) {
	all, err := c.elements(text)
	if err != nil {
		return cty.NilVal, false, plainError(err)
	}
	whole = true
	values := make([]cty.Value, 0, len(all))
	for _, raw := range all {
		value, exact, err := c.readPlain(raw, t.ElementType())
		if err != nil {
			return cty.NilVal, false, err
		}
		values, whole = append(values, value), whole && exact
	}
	switch {
	case len(values) == 0 && t.IsSetType():
		return cty.SetValEmpty(t.ElementType()), whole, nil
	case len(values) == 0:
		return cty.ListValEmpty(t.ElementType()), whole, nil
	case !alike(values):
		return cty.TupleVal(values), whole, nil
	case t.IsSetType():
		return cty.SetVal(values), whole, nil
	default:
		return cty.ListVal(values), whole, nil
	}
}

// alike reports whether all values are of one type.
func alike(all []cty.Value) bool {
	return !slices.ContainsFunc(all, func(v cty.Value) bool { return !v.Type().Equals(all[0].Type()) })
}
