package state

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// value is a cty value in a file: {"type":…,"value":…}. Only a wholly known value without marks
// can be written.
type value struct{ cty.Value }

type valueFile struct {
	Type  json.RawMessage `json:"type"`
	Value json.RawMessage `json:"value"`
}

// newValue returns nil for cty.NilVal, which a file leaves out.
func newValue(v cty.Value) *value {
	if v == cty.NilVal {
		return nil
	}
	return &value{v}
}

// ctyValue undoes newValue.
func (v *value) ctyValue() cty.Value {
	if v == nil {
		return cty.NilVal
	}
	return v.Value
}

// MarshalJSON implements json.Marshaler.
func (v *value) MarshalJSON() ([]byte, error) {
	if err := checkStorable(v.Value); err != nil {
		return nil, err
	}
	typ, err := ctyjson.MarshalType(v.Type())
	if err != nil {
		return nil, err
	}
	exact, err := cty.Transform(v.Value, widenInteger)
	if err != nil {
		return nil, err
	}
	val, err := ctyjson.Marshal(exact, v.Type())
	if err != nil {
		return nil, err
	}
	return encode(valueFile{typ, val})
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *value) UnmarshalJSON(data []byte) error {
	var f valueFile
	if err := decode(data, &f); err != nil {
		return err
	}
	if f.Type == nil || f.Value == nil {
		return fmt.Errorf("a value without its type or content")
	}
	var err error
	if v.Value, err = f.decode(); err != nil {
		return fmt.Errorf("a value: %w", err)
	}
	return nil
}

// decode turns the panics of cty, where a type or a value contradicts itself,
// into errors: a file can hold anything.
func (f valueFile) decode() (v cty.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = cty.NilVal, fmt.Errorf("%v", p)
		}
	}()
	typ, err := ctyjson.UnmarshalType(f.Type)
	if err != nil {
		return cty.NilVal, err
	}
	return ctyjson.Unmarshal(f.Value, typ)
}

// widenInteger widens a whole number to the precision with which numbers are read
// back: the shortest text of a narrow one, such as 1<<60 from a float64, stands
// for another number there. Fractions are equal when their shortest texts are.
func widenInteger(_ cty.Path, v cty.Value) (cty.Value, error) {
	if v.Type() != cty.Number || v.IsNull() || !v.AsBigFloat().IsInt() {
		return v, nil
	}
	return cty.NumberVal(new(big.Float).SetPrec(512).Set(v.AsBigFloat())), nil
}

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
