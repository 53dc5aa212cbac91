package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// canonicalMountOptions checks options of sshfs. vmctl itself decides how sshfs reaches the server.
func canonicalMountOptions(v cty.Value) (cty.Value, string) {
	reach := []string{"ssh_command", "sftp_server", "directport", "passive", "slave", "vsock", "password_stdin"}
	for _, option := range v.AsValueSlice() {
		if option.IsNull() {
			return cty.NilVal, "has an element that is null. Leave it out."
		}
		text := option.AsString()
		name, _, _ := strings.Cut(text, "=")
		switch {
		case name == "" || strings.ContainsFunc(text, isControl):
			return cty.NilVal, fmt.Sprintf("has the option %q: write a name, or NAME=VALUE, on one line.", shorten(text))
		case strings.Contains(text, ","):
			return cty.NilVal, fmt.Sprintf("has %q, which are several options: write each as an element of its own.", shorten(text))
		case slices.Contains(reach, name):
			return cty.NilVal, fmt.Sprintf("has `%s`: vmctl itself connects sshfs with the virtual machine. Leave it out.", name)
		}
	}
	return v, ""
}
