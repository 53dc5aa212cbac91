package spec_test

import (
	"strings"
	"testing"
)

// row A64, of the language
func TestSharedResources(t *testing.T) {
	for _, test := range []struct{ name, shared, says string }{
		{"a list", `["libvirt_network.lan", "module.base.libvirt_volume.disk[0]"]`, ""},
		{"IDs", `{ "libvirt_network.lan" = "1234" }`, ""},
		{"nothing", `[]`, ""},
		{"data", `["data.aws_vpc.lan"]`, "no address of a resource of the module"},
		{"no address", `["lan"]`, "no address of a resource of the module"},
		{"an option as ID", `{ "libvirt_network.lan" = "-force" }`, "begins with no hyphen"},
		{"a number", `7`, "must be a list like"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, diags := load(t, "provider \"terraform\" \"cloud\" {\n  dir = \"infra\"\n  shared = "+test.shared+"\n}\n")
			said := diags.Error()
			if test.says == "" && strings.Contains(said, "shared") || !strings.Contains(said, test.says) {
				t.Errorf("%q, want %q", said, test.says)
			}
		})
	}
}
