package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"vmctl/spec"
)

// typeOf draws a type.
func typeOf(depth int) *rapid.Generator[cty.Type] {
	return rapid.Custom(func(t *rapid.T) cty.Type {
		kinds := []string{"string", "number", "bool"}
		if depth > 0 {
			kinds = append(kinds, "list", "map", "object", "object")
		}
		switch rapid.SampledFrom(kinds).Draw(t, "type") {
		case "string":
			return cty.String
		case "number":
			return cty.Number
		case "bool":
			return cty.Bool
		case "list":
			return cty.List(typeOf(depth-1).Draw(t, "element"))
		case "map":
			element := typeOf(depth-1).Draw(t, "element")
			if element.IsObjectType() { // blocks with labels, which are read as an object
				element = cty.String
			}
			return cty.Map(element)
		default:
			return objectOf(depth).Draw(t, "object")
		}
	})
}

func objectOf(depth int) *rapid.Generator[cty.Type] {
	return rapid.Custom(func(t *rapid.T) cty.Type {
		all := map[string]cty.Type{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 0, 4, rapid.ID).Draw(t, "names") {
			all[name] = typeOf(depth-1).Draw(t, name)
		}
		return cty.Object(all)
	})
}

// valueOf draws a value of a type.
func valueOf(t *rapid.T, of cty.Type) cty.Value {
	if rapid.IntRange(0, 9).Draw(t, "null") == 0 {
		return cty.NullVal(of)
	}
	switch {
	case of == cty.String:
		return cty.StringVal(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "true", "12", "<&>\u2028", "\x00\""})).Draw(t, "text"))
	case of == cty.Number:
		if rapid.Bool().Draw(t, "whole") {
			return cty.NumberIntVal(rapid.Int64().Draw(t, "n"))
		}
		return cty.MustParseNumberVal(fmt.Sprintf("%d.%d", rapid.IntRange(-9, 99).Draw(t, "n"), rapid.IntRange(0, 9999).Draw(t, "fraction")))
	case of == cty.Bool:
		return cty.BoolVal(rapid.Bool().Draw(t, "truth"))
	case of.IsListType():
		var all []cty.Value
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			all = append(all, valueOf(t, of.ElementType()))
		}
		if len(all) == 0 {
			return cty.ListValEmpty(of.ElementType())
		}
		return cty.ListVal(all)
	case of.IsMapType():
		all := map[string]cty.Value{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			all[rapid.String().Draw(t, "key")] = valueOf(t, of.ElementType())
		}
		if len(all) == 0 {
			return cty.MapValEmpty(of.ElementType())
		}
		return cty.MapVal(all)
	default:
		all := map[string]cty.Value{}
		for _, name := range slices.Sorted(maps.Keys(of.AttributeTypes())) {
			all[name] = valueOf(t, of.AttributeType(name))
		}
		return cty.ObjectVal(all)
	}
}

// What is written and read with the same type is the same, and valid JSON.
func TestPlainIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := typeOf(3).Draw(t, "type")
		v := valueOf(t, of)
		text, err := appendPlain(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(text) {
			t.Fatalf("%s is no JSON", text)
		}
		got, whole, err := new(cutter).readPlain(text, of)
		if err != nil || !whole || !got.RawEquals(v) {
			t.Fatalf("%s is read as %#v, whole %t, %v; want %#v", text, got, whole, err, v)
		}
	})
}

// With any other type, what is said to be whole is written as it was.
func TestPlainThatIsWholeIsWrittenAsItWas(t *testing.T) {
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		v := valueOf(t, objectOf(3).Draw(t, "type"))
		text, err := appendPlain(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		got, whole, err := new(cutter).readPlain(text, objectOf(3).Draw(t, "other type"))
		if err != nil || !whole {
			kept++
			return
		}
		again, err := appendPlain(nil, got)
		if err != nil || string(again) != string(text) {
			t.Fatalf("%s was read whole, and is written as %s, %v", text, again, err)
		}
	})
	if kept == 0 {
		t.Error("no value was of another type")
	}
}

// Nothing that must not be in a file is written.
func TestPlainRefusesSecretsAndUnknowns(t *testing.T) {
	for _, v := range []cty.Value{
		cty.UnknownVal(cty.String), cty.StringVal("x").Mark("secret"),
		cty.ObjectVal(map[string]cty.Value{"a": cty.ListVal([]cty.Value{cty.UnknownVal(cty.String)})}),
		cty.ListVal([]cty.Value{cty.StringVal("x").Mark("secret")}),
		cty.PositiveInfinity,
	} {
		if text, err := appendPlain(nil, v); err == nil {
			t.Errorf("%#v is written as %s", v, text)
		}
	}
}

// FuzzValues reads any JSON as the values of a record: they are refused, or written as they
// were.
func FuzzValues(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"memory":1}`, `{"memory":"1","x":[1,{"a":null}]}`, `{"disks":[{"disk":"disk.a"},{"size":1}],"ports":{"a":1}}`,
		`{"disks":{"disk":1}}`, `{"memory":1e999,"name":"\u0000\ud800"}`, `{"memory":1,"memory":2}`,
	} {
		f.Add([]byte(seed))
	}
	r := newReader(Types{Values: map[string]cty.Type{
		"memory": cty.Number, "name": cty.String, "ports": cty.Map(cty.Number),
		"disks": cty.List(cty.Object(map[string]cty.Type{"disk": cty.String, "size": cty.Number})),
	}}, nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		v, held, err := r.readValues(data, spec.VM)
		if err != nil {
			return
		}
		text, err := Kept{values: held}.appendValues(v)
		if err != nil {
			t.Fatalf("%s was read and cannot be written: %v", data, err)
		}
		if !reflect.DeepEqual(exactly(t, data), exactly(t, text)) {
			t.Errorf("%s is written as %s", data, text)
		}
	})
}

// exactly returns the content of JSON, with the texts of its numbers.
func exactly(t *testing.T, data []byte) any {
	var v any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return v
}
