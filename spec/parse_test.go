package spec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParsePieces loads sources of several pieces. Where one piece could end inside of something, the whole counts.
func TestParsePieces(t *testing.T) {
	output := func(name, value string) string { return "output \"" + name + "\" {\n  value = " + value + "\n}\n" }
	var many strings.Builder
	for i := range 100 {
		many.WriteString(output(fmt.Sprintf("n%d", i), "1"))
	}
	for _, c := range []struct {
		name, tail, mistake string
		value               string // of the output x
	}{
		{name: "plain", tail: output("x", `"1"`), value: "1"},
		{name: "large block", tail: output("x", `"`+strings.Repeat("1", 2000)+`"`), value: strings.Repeat("1", 2000)},
		{name: "end of a block in a text", tail: output("x", "<<E\nvm \"a\" {\n}\n"+strings.Repeat("}\n", 2000)+"E"), value: "vm \"a\" {\n}\n" + strings.Repeat("}\n", 2000)},
		{name: "end of a block in a comment", tail: "/*\n}\n" + strings.Repeat(" ", 2000) + "\n}\n*/\n" + output("x", `"1"`), value: "1"},
		{name: "end of an object like that of a block", tail: output("x", "values({\n  a = \"1\"\n}\n)[0]"), value: "1"},
		{name: "a mistake", tail: output("x", "1 +"), mistake: "main.vmctl.hcl:302,14-303,1: Invalid expression"},
		{name: "a mark inside", tail: "\ufeff" + output("x", `"1"`), mistake: "main.vmctl.hcl:301,1-2: Invalid character"},
		{name: "an attribute outside", tail: "a = 1\n" + many.String() + "a = 2\n", mistake: "main.vmctl.hcl:602,1-2: Attribute redefined"},
		{name: "nested in one piece", tail: output("x", strings.Repeat("(", 2000)), mistake: "main.vmctl.hcl:302,1009-1010: Too deeply nested"},
		{name: "a large exponent", tail: output("x", "1e+9999"), mistake: "main.vmctl.hcl:302,11-18: Number too large"},
		{name: "no large exponent", tail: output("x", `"${1e+999 > 1}e1234"`), value: "truee1234"},
		{name: "block not closed", tail: "output \"x\" {\n  value = 1\n", mistake: "main.vmctl.hcl:301,12-13: Unclosed configuration block"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, diags := load(t, many.String()+c.tail)
			if c.mistake != "" {
				if len(diags) == 0 || !strings.Contains(diags[0].Error(), c.mistake) {
					t.Errorf("got %v\nwant %s", diags, c.mistake)
				}
				return
			}
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			outputs, diags := config.Outputs(nil)
			if len(diags) > 0 || len(outputs) != 101 {
				t.Fatalf("%d outputs: %v", len(outputs), diags)
			}
			for _, o := range outputs {
				if o.Name == "x" {
					if diff := cmp.Diff(c.value, o.Value.AsString()); diff != "" {
						t.Errorf("output (-want +got):\n%s", diff)
					}
				}
			}
		})
	}
	t.Run("the block around a mistake", func(t *testing.T) {
		config, diags := load(t, many.String()+output("x", "local.none"))
		if got := render(t, config, diags); !strings.Contains(got, `line 302, in output "x":`) {
			t.Errorf("got %s", got)
		}
	})
}
