package lima

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"vmctl/internal/shellword"
)

// addScripts adds vmctl's own scripts: one that lets its keys in and gives the guest its host key, and one that
// mounts additional disks. An instance that vmctl did not make keeps its host key, and lets in its own user as
// before; other keys are added if the spec has some.
func (w *written) addScripts(p *Provider, g parts) {
	var scripts []string
	switch {
	case !g.imported:
		scripts = append(scripts, loginScript(g.vm.SSH.User, g.authorized, g.hostKey))
	case g.vm.SSH.Identity != "" || len(g.vm.SSH.AuthorizedKeys) > 0:
		user := p.login(&instance{doc: w.doc}, g.vm.SSH)
		scripts = append(scripts, loginScript(user, g.authorized, ""))
	}
	if script := mountScript(g.disks); script != "" {
		scripts = append(scripts, script)
	}
	provision, _ := w.doc[keyProvision].([]any)
	provision = slices.DeleteFunc(slices.Clone(provision), isOwnScript)
	for _, script := range scripts {
		// Lima expands templates in scripts.
		provision = append(provision, map[string]any{"mode": "system", "script": strings.ReplaceAll(script, "{{", `{{"{{"}}`)})
	}
	if len(provision) > 0 {
		w.doc[keyProvision] = provision
	}
}

// The beginnings of vmctl's own scripts, of every version, and of the one by which the guest lets it in.
const (
	ownScript       = "#!/bin/sh\n# vmctl: "
	loginScriptHead = ownScript + "who may log in, and how the guest proves itself\n"
)

// isOwnScript reports whether an entry of provision is a script of vmctl's own.
func isOwnScript(entry any) bool {
	script, _ := entry.(map[string]any)
	text, _ := script["script"].(string)
	return strings.HasPrefix(text, ownScript)
}

// mountScript returns a script that makes a file system on each disk that is to be mounted and is
// blank, and mounts it; "": there is none to mount. The guest finds its disks in the order of the
// definition, after its root disk.
func mountScript(disks []usedDisk) string {
	script := ""
	for i, d := range disks {
		if d.mountPoint == "" {
			continue
		}
		script += fmt.Sprintf("mount_disk /dev/vd%s %s %s\n", letters(i+1), shellword.Quote(cmp.Or(d.fsType, "ext4")), shellword.Quote(d.mountPoint))
	}
	if script == "" {
		return ""
	}
	return ownScript + `mounts additional disks
set -eu
mount_disk() { # DEVICE TYPE PATH: only a disk whose beginning is all zeros gets a file system
  [ -n "$(head -c 1048576 "$1" | tr -d '\000' | head -c 1)" ] || "mkfs.$2" -q "$1"
  mkdir -p "$3"
  mountpoint -q "$3" || mount "$1" "$3"
}
` + script
}

// hostKeyEnd stands after the private host key in a login script.
const hostKeyEnd = "END_OF_HOST_KEY"

// loginScript returns a script that lets keys in as a user, and gives the guest its host key. Lima
// itself lets only its own key in, and never as root; and since it gives an instance another ID at
// each start, cloud-init would make new host keys each time. hostKey is a private key; "": the guest makes
// its own.
func loginScript(user string, authorized []string, hostKey string) string {
	lines := make([]string, len(authorized))
	for i, line := range authorized {
		lines[i] = shellword.Quote(line)
	}
	script := loginScriptHead + `set -eu
user=` + shellword.Quote(user) + `
home=$(getent passwd "$user" | cut -d: -f6)
mkdir -p -m 700 "$home/.ssh"
kept=$(grep -v -e ' vmctl:lima$' -e '^no-port-forwarding' "$home/.ssh/authorized_keys" 2>/dev/null || true)
{
  [ -z "$kept" ] || printf '%s\n' "$kept"
  printf '%s vmctl:lima\n' ` + strings.Join(lines, " ") + `
} >"$home/.ssh/authorized_keys.vmctl"
chmod 600 "$home/.ssh/authorized_keys.vmctl"
mv "$home/.ssh/authorized_keys.vmctl" "$home/.ssh/authorized_keys"
chown -R "$user:" "$home/.ssh"
`
	if hostKey == "" {
		return script
	}
	return script + `[ ! -d /etc/cloud/cloud.cfg.d ] || echo 'ssh_deletekeys: false' >/etc/cloud/cloud.cfg.d/99_vmctl.cfg
key=/etc/ssh/ssh_host_ed25519_key
umask 077
cat >"$key.vmctl" <<'` + hostKeyEnd + `'
` + strings.TrimSuffix(hostKey, "\n") + `
` + hostKeyEnd + `
if cmp -s "$key.vmctl" "$key"; then
  rm "$key.vmctl"
else
  ssh-keygen -y -f "$key.vmctl" >"$key.pub"
  chmod 644 "$key.pub"
  mv "$key.vmctl" "$key"
  systemctl try-restart ssh sshd 2>/dev/null || service ssh restart || service sshd restart
fi
`
}

// letters returns the end of the name of the nth disk of a guest, counted from 0: a, b, …, z, aa, ab, …
func letters(n int) string {
	if n < 26 {
		return string(rune('a' + n))
	}
	return letters(n/26-1) + letters(n%26)
}

// hostKeyIn returns the private host key that a definition gives its guest; "": none.
func hostKeyIn(doc map[string]any) string {
	list, _ := doc[keyProvision].([]any)
	for _, entry := range list {
		if !isOwnScript(entry) {
			continue
		}
		e, _ := entry.(map[string]any)
		_, after, _ := strings.Cut(text(e["script"], ""), "<<'"+hostKeyEnd+"'\n")
		if key, _, found := strings.Cut(after, hostKeyEnd+"\n"); found {
			return key
		}
	}
	return ""
}
