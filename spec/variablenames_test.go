package spec_test

import (
	"strings"
	"testing"
)

func TestVariableNames(t *testing.T) {
	for _, test := range []struct{ name, pass, says string }{
		{"names and a prefix", `["LANG", "ANTHROPIC_*"]`, ""},
		{"none", `[]`, ""},
		{"all", `["*"]`, `names "*", which is no environment variable`},
		{"a star inside", `["A_*_KEY"]`, "A `*` at its end is all that begin so."},
		{"two stars", `["A**"]`, "which is no environment variable"},
		{"a value", `["A=1"]`, "which is no environment variable"},
		{"null", `[null]`, "has an element that is null"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, diags := load(t, "workspace \"auth\" {\n  env {\n    pass = "+test.pass+"\n  }\n}\n")
			var said string
			for _, d := range diags {
				said += d.Detail + "\n"
			}
			if test.says == "" && strings.Contains(said, "`pass`") || !strings.Contains(said, test.says) {
				t.Errorf("%q, want %q", said, test.says)
			}
		})
	}
}
