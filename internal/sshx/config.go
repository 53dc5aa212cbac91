package sshx

import (
	"fmt"
	"strings"
)

// Config returns a stanza for OpenSSH's configuration that reaches the target
// under the name host, with the same key and the same check of the host key. It
// ends with a line break.
func Config(t Target, host string) string {
	strict := "yes"
	if t.AcceptNew {
		strict = "accept-new"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Host %s\n", host)
	for _, option := range [][2]string{
		{"HostName", t.Address},
		{"Port", fmt.Sprint(t.Port)},
		{"User", t.User},
		{"IdentityFile", configPath(t.IdentityFile)},
		{"IdentitiesOnly", "yes"},
		{"HostKeyAlias", t.Alias},
		{"UserKnownHostsFile", configPath(t.KnownHosts)},
		{"GlobalKnownHostsFile", "/dev/null"},
		{"StrictHostKeyChecking", strict},
	} {
		fmt.Fprintf(&b, "  %s %s\n", option[0], option[1])
	}
	return b.String()
}

// configPath quotes a path for ssh_config(5): quotes keep spaces, and %% stands
// for a percent sign.
func configPath(path string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	path = strings.ReplaceAll(path, `\`, `\\`)
	return `"` + strings.ReplaceAll(path, `"`, `\"`) + `"`
}
