package spec_test

import (
	"strings"
	"testing"
)

// row A27, of options that would reach another server
func TestMountOptions(t *testing.T) {
	for _, test := range []struct{ name, options, says string }{
		{"some", `["reconnect", "ServerAliveInterval=15"]`, ""},
		{"none", `[]`, ""},
		{"another transport", `["ssh_command=/tmp/mine"]`, "vmctl itself connects sshfs"},
		{"another transport, hidden", `["reconnect,ssh_command=/tmp/mine"]`, "which are several options"},
		{"a port", `["directport=22"]`, "vmctl itself connects sshfs"},
		{"nothing", `[""]`, "write a name, or NAME=VALUE"},
		{"two lines", `["idmap=none\nnonempty"]`, "on one line"},
		{"null", `[null]`, "null"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, diags := load(t, "workspace \"auth\" {\n  vm = vm.dev\n  mount {\n    mount_path = \"auth\"\n    options = "+test.options+"\n  }\n}\n")
			var said string
			for _, d := range diags {
				said += d.Detail + "\n"
			}
			if test.says == "" && strings.Contains(said, "`options`") || !strings.Contains(said, test.says) {
				t.Errorf("%q, want %q", said, test.says)
			}
		})
	}
}
