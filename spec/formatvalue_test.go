package spec_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

func TestFormatValue(t *testing.T) {
	for _, c := range []struct {
		path string
		v    cty.Value
		want string
	}{
		{"memory", cty.NumberIntVal(8 << 30), "8GiB"},
		{"memory", cty.NumberFloatVal(1.5), "1.5"},
		{"stop.grace", cty.NumberIntVal(90), "1m30s"},
		{"cpus", cty.NumberIntVal(2), "2"},
		{"running", cty.True, "true"},
		{"name", cty.NullVal(cty.String), "none"},
		{"name", cty.NilVal, "none"},
		{"name", cty.StringVal("none"), `"none"`},
		{"name", cty.StringVal("two words"), `"two words"`},
		{"name", cty.StringVal(""), `""`},
		{"name", cty.StringVal("web"), "web"},
		{"name", cty.UnknownVal(cty.String), "(known later)"},
		{"name", cty.StringVal("x").Mark("y"), "(sensitive)"},
		{"boot.kernel_sha256", cty.StringVal("595033cf5ef0ae9c41a9088e18dcb4f62227e742429c486af973d1f8da99a6c2"), "595033cf5ef0..."},
		{"stop", cty.ObjectVal(map[string]cty.Value{"grace": cty.NumberIntVal(60), "force": cty.True, "x": cty.NullVal(cty.Bool)}), "{force true, grace 1m}"},
		{"port_forward", cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"guest": cty.NumberIntVal(80)})}), "[{guest 80}]"},
		{"ports", cty.MapVal(map[string]cty.Value{"80": cty.NumberIntVal(8080)}), "{80 8080}"},
	} {
		if got := spec.FormatValue(spec.VM, c.path, c.v); got != c.want {
			t.Errorf("%s %#v is written %s, want %s", c.path, c.v, got, c.want)
		}
	}
}
