package nocloud

import (
	"encoding/base64"
	"fmt"

	"vmctl/internal/shellword"
)

// rekey is a script, for the guest's shell as root, that gives it these keys beside
// those that it has. cloud-init runs it before the SSH server starts.
func (a *Access) rekey() string {
	const script = `set -eu
umask 077
text() { printf '%%s' "$1" | base64 -d; }
text %[1]s >/etc/ssh/ssh_host_ed25519_key
text %[2]s >/etc/ssh/ssh_host_ed25519_key.pub
user=%[4]s
home=$(getent passwd "$user" | cut -d : -f 6)
mkdir -p "$home/.ssh"
touch "$home/.ssh/authorized_keys"
grep -qxF "$(text %[3]s)" "$home/.ssh/authorized_keys" || text %[3]s >>"$home/.ssh/authorized_keys"
chown -R "$user:" "$home/.ssh"
`
	pack := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	return fmt.Sprintf(script, pack(a.HostPrivate), pack(a.HostPublic), pack(a.Authorized+"\n"), shellword.Quote(a.User))
}
