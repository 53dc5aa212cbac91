package spec_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"columns", "vm \"a\"   {\ncpus=2 # two\n  memory   = \"1GiB\"\n}\n", "vm \"a\" {\n  cpus   = 2 # two\n  memory = \"1GiB\"\n}\n"},
		{"comments", "# one\n// two\n/* three */\nvm \"a\" {} # four\n", "# one\n// two\n/* three */\nvm \"a\" {} # four\n"},
		{"heredoc", "locals {\nx = <<EOT\n  kept   as is\nEOT\n}\n", "locals {\n  x = <<EOT\n  kept   as is\nEOT\n}\n"},
		{"byte order mark", "\ufeffvm \"a\" {}\n", "vm \"a\" {}\n"},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, diags := spec.Format([]byte(c.src), "main.vmctl.hcl")
			if diags.HasErrors() || string(got) != c.want {
				t.Errorf("got %q, %v\nwant %q", got, diags, c.want)
			}
			again, diags := spec.Format(got, "main.vmctl.hcl")
			if diags.HasErrors() || string(again) != string(got) {
				t.Errorf("formatting twice: %q, %v", again, diags)
			}
		})
	}
}

func TestFormatRefuses(t *testing.T) {
	for src, want := range map[string]string{
		"vm {":                            "main.vmctl.hcl:1,4-5: Unclosed configuration block",
		"x = \x00":                        "main.vmctl.hcl:1,5-6: Invalid character",
		"x = " + strings.Repeat("(", 2e5): "main.vmctl.hcl:1,1005-1006: Too deeply nested",
	} {
		got, diags := spec.Format([]byte(src), "main.vmctl.hcl")
		if string(got) != src || !diags.HasErrors() || !strings.Contains(diags.Error(), want) {
			t.Errorf("got %.100v\nwant %s", diags, want)
		}
	}
}

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

func TestFormatNumber(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "2": "2", "-2.5": "-2.5", "12345678901234567890": "12345678901234567890",
		"1e99999999": "1.000000e99999999", "-3e-99999999": "-3.000000e-99999999",
	} {
		n, err := cty.ParseNumberVal(text)
		if err != nil {
			t.Fatal(err)
		}
		got := spec.FormatNumber(n.AsBigFloat())
		if back, _, err := big.ParseFloat(got, 10, 53, big.ToNearestEven); err != nil || back.Sign() != n.AsBigFloat().Sign() {
			t.Errorf("%s is written %q, which is no number of its sign (%v)", text, got, err)
		}
		if got != want && text[len(text)-1] != '9' {
			t.Errorf("%s is written %q, want %q", text, got, want)
		}
	}
}
