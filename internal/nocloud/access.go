package nocloud

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"vmctl/internal/shellword"
)

// Access describes the login to a guest: the user, the authorized keys and the host key.
type Access struct {
	User        string   // made if there is none, and may become root by sudo
	Authorized  string   // line of authorized_keys
	Others      []string // more of them
	Former      []string // lines that a guest that was set up before has to lose
	HostPrivate string   // ed25519, in OpenSSH's format
	HostPublic  string   // line of the .pub file
	// Again is for a guest that was set up with other keys: it gets these at its
	// next start, though it is the same instance. They are written at every start
	// that finds them in the seed.
	Again bool
}

// rekey returns a shell script that gives the guest these keys and removes the former ones. It
// leaves all other keys of the guest alone. cloud-init runs it as root before the SSH server
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
text %[3]s | while IFS= read -r line; do
	grep -qxF -e "$line" "$keys" || printf '%%s\n' "$line" >>"$keys"
done
text %[5]s | while IFS= read -r line; do
	grep -vxF -e "$line" "$keys" >"$keys.vmctl" || true
	cat "$keys.vmctl" >"$keys"
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

// cloudConfig is the first line of a configuration of cloud-init.
const cloudConfig = "#cloud-config"

// merge tells cloud-init how to join vmctl's part to the parts before it: lists grow,
// and if both set a value, the user's value stands.
type merge struct {
	Name     string   `json:"name"`
	Settings []string `json:"settings"`
}

type config struct {
	MergeHow    []merge           `json:"merge_how"`
	BootCmd     [][]string        `json:"bootcmd,omitempty"`
	SSHKeys     map[string]string `json:"ssh_keys,omitempty"`
	DisableRoot *bool             `json:"disable_root,omitempty"`
	Authorized  []string          `json:"ssh_authorized_keys,omitempty"`
	Users       []any             `json:"users,omitempty"`
}

type user struct {
	Name       string   `json:"name"`
	Sudo       string   `json:"sudo"`
	Shell      string   `json:"shell"`
	LockPasswd bool     `json:"lock_passwd"`
	Authorized []string `json:"ssh_authorized_keys"`
}

// access returns the part of the user data that lets vmctl in.
func (s Seed) access() (string, error) {
	a := s.Access
	c := config{
		MergeHow: []merge{
			{"list", []string{"append"}}, {"dict", []string{"no_replace", "recurse_list"}}, {"str", []string{}},
		},
	}
	if a.Again {
		c.BootCmd = [][]string{{"sh", "-c", a.rekey()}}
		return c.text()
	}
	c.SSHKeys = map[string]string{"ed25519_private": a.HostPrivate, "ed25519_public": strings.TrimSpace(a.HostPublic)}
	if a.User == "root" {
		no := false
		c.DisableRoot, c.Authorized = &no, a.lines()
	} else {
		if !namesUsers.MatchString(s.UserData) { // a list of users is the whole list, unless it says otherwise
			c.Users = append(c.Users, "default")
		}
		c.Users = append(c.Users, user{
			Name: a.User, Sudo: "ALL=(ALL) NOPASSWD:ALL", Shell: "/bin/bash", LockPasswd: true, Authorized: a.lines(),
		})
	}
	return c.text()
}

// lines returns the lines of authorized_keys.
func (a *Access) lines() []string { return append([]string{a.Authorized}, a.Others...) }

func (c config) text() (string, error) {
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return "", err
	}
	return cloudConfig + "\n" + string(text) + "\n", nil
}
