// Package ctyread reads values of cty that may be missing, null or unknown. Whatever
// cannot be read is the zero value.
package ctyread

import (
	"math/big"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// Known reports whether a value exists, is known and is not null.
func Known(v cty.Value) bool { return v != cty.NilVal && v.IsKnown() && !v.IsNull() }

// Attr returns an attribute of a known object, whatever the attribute's own value is. It returns
// cty.NilVal for a value that is not a known object or lacks the attribute.
func Attr(v cty.Value, name string) cty.Value {
	if !Has(v, name) {
		return cty.NilVal
	}
	return v.GetAttr(name)
}

// Has reports whether a value is a known object with an attribute, whatever the attribute's own value is.
func Has(v cty.Value, name string) bool {
	if !Known(v) || !v.Type().IsObjectType() {
		return false
	}
	_, has := v.Type().AttributeTypes()[name]
	return has
}

// KnownAttr returns an attribute of an object if it is known and not null, else cty.NilVal.
func KnownAttr(v cty.Value, name string) cty.Value {
	if a := Attr(v, name); Known(a) {
		return a
	}
	return cty.NilVal
}

// Text returns an attribute that is a known string, else "".
func Text(v cty.Value, name string) string {
	if a := KnownAttr(v, name); a != cty.NilVal && a.Type() == cty.String {
		return a.AsString()
	}
	return ""
}

// True reports whether an attribute is known, and true.
func True(v cty.Value, name string) bool {
	a := KnownAttr(v, name)
	return a != cty.NilVal && a.Type() == cty.Bool && a.True()
}

// Number returns an attribute that is a known number, else nil.
func Number(v cty.Value, name string) *big.Float {
	if a := KnownAttr(v, name); a != cty.NilVal && a.Type() == cty.Number {
		return a.AsBigFloat()
	}
	return nil
}

// Uint returns an attribute that is a known number, without its fraction, else 0.
func Uint(v cty.Value, name string) uint64 {
	if n := Number(v, name); n != nil {
		whole, _ := n.Uint64()
		return whole
	}
	return 0
}

// Seconds returns an attribute that is a known number of seconds, else the value given.
func Seconds(v cty.Value, name string, otherwise time.Duration) time.Duration {
	n := Number(v, name)
	if n == nil {
		return otherwise
	}
	seconds, _ := n.Float64()
	return time.Duration(seconds * float64(time.Second))
}

// List returns the elements of a known list, set, tuple, map or object, else nil.
func List(v cty.Value) []cty.Value {
	if !Known(v) || !v.CanIterateElements() {
		return nil
	}
	return v.AsValueSlice()
}
