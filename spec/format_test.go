package spec_test

import (
	"strings"
	"testing"

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
