package ctyread_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
)

// Whatever a value lacks, reading it gives the zero value and never panics.
func TestWhatCannotBeRead(t *testing.T) {
	for name, v := range map[string]cty.Value{
		"nothing":               cty.NilVal,
		"null":                  cty.NullVal(cty.Object(map[string]cty.Type{"a": cty.String})),
		"unknown":               cty.UnknownVal(cty.Object(map[string]cty.Type{"a": cty.String})),
		"of any type":           cty.DynamicVal,
		"no object":             cty.StringVal("a"),
		"without the attribute": cty.EmptyObjectVal,
		"a null attribute":      cty.ObjectVal(map[string]cty.Value{"a": cty.NullVal(cty.String)}),
		"an unknown attribute":  cty.ObjectVal(map[string]cty.Value{"a": cty.UnknownVal(cty.Bool)}),
		"another type":          cty.ObjectVal(map[string]cty.Value{"a": cty.EmptyTupleVal}),
	} {
		if got := ctyread.Text(v, "a"); got != "" {
			t.Errorf("%s: text %q", name, got)
		}
		if ctyread.True(v, "a") {
			t.Errorf("%s: true", name)
		}
		if n := ctyread.Uint(v, "a"); n != 0 || ctyread.Number(v, "a") != nil {
			t.Errorf("%s: number %d", name, n)
		}
		if got := ctyread.List(ctyread.Attr(v, "a")); len(got) > 0 {
			t.Errorf("%s: list %#v", name, got)
		}
		if a := ctyread.KnownAttr(v, "a"); a != cty.NilVal && !ctyread.Known(a) {
			t.Errorf("%s: %#v is not known", name, a)
		}
	}
}

func TestWhatCanBeRead(t *testing.T) {
	v := cty.ObjectVal(map[string]cty.Value{
		"text": cty.StringVal("x"), "flag": cty.True, "size": cty.NumberIntVal(7),
		"list": cty.ListVal([]cty.Value{cty.StringVal("y")}), "null": cty.NullVal(cty.String),
	})
	if got := ctyread.Text(v, "text"); got != "x" {
		t.Errorf("text %q", got)
	}
	if !ctyread.True(v, "flag") {
		t.Error("the flag is not true")
	}
	if got := ctyread.Uint(v, "size"); got != 7 {
		t.Errorf("size %d", got)
	}
	if got := ctyread.List(ctyread.Attr(v, "list")); len(got) != 1 || got[0].AsString() != "y" {
		t.Errorf("list %#v", got)
	}
	if a := ctyread.Attr(v, "null"); a == cty.NilVal || !a.IsNull() {
		t.Errorf("a null attribute is %#v", a)
	}
}
