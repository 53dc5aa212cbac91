package nocloud

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"vmctl/internal/shellword"
)

// rekey is a script, for the guest's shell as root, that gives it these keys beside
// those that it has, but for the former ones that it is not to have. cloud-init runs it before the SSH server
// starts.
func (a *Access) rekey() string {
	const script = `set -eu
umask 077
text() { printf '%%s' "$1" | base64 -d; }
text %[1]s >/etc/ssh/ssh_host_ed25519_key
text %[2]s >/etc/ssh/ssh_host_ed25519_key.pub
user=%[4]s
home=$(getent passwd "$user" | cut -d : -f 6)
mkdir -p "$home/.ssh"
keys=$home/.ssh/authorized_keys
touch "$keys"
text %[3]s | while IFS= read -r line; do
	grep -qxF -e "$line" "$keys" || printf '%%s\n' "$line" >>"$keys"
done
text %[5]s | while IFS= read -r line; do
	grep -vxF -e "$line" "$keys" >"$keys.vmctl" || true
	cat "$keys.vmctl" >"$keys"
	rm "$keys.vmctl"
done
chown -R "$user:" "$home/.ssh"
`
	former := slices.DeleteFunc(slices.Clone(a.Former), func(line string) bool { return slices.Contains(a.lines(), line) })
	pack := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	return fmt.Sprintf(script, pack(a.HostPrivate), pack(a.HostPublic), pack(joinLines(a.lines())), shellword.Quote(a.User), pack(joinLines(former)))
}

// joinLines returns lines as a text.
func joinLines(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	return b.String()
}
