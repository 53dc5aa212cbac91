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
		user := p.login(&instance{name: g.name, doc: w.doc}, g.vm.SSH)
		scripts = append(scripts, loginScript(user, g.authorized, ""))
	}
	if script := mountScript(g.disks); script != "" {
		scripts = append(scripts, script)
	}
	provision, _ := w.doc[keyProvision].([]any)
	provision = slices.DeleteFunc(slices.Clone(provision), isOwnScript)
	for _, script := range scripts {
		provision = append(provision, systemScript(script))
	}
	if len(provision) > 0 {
		w.doc[keyProvision] = provision
	}
}

// systemScript returns a script as an entry of provision. Lima expands templates in it.
func systemScript(script string) map[string]any {
	return map[string]any{"mode": "system", "script": strings.ReplaceAll(script, "{{", `{{"{{"}}`)}
}

// replaceMountScript puts a script into the place of the one that mounts additional disks; "": there is none.
func replaceMountScript(doc map[string]any, script string) {
	provision, _ := doc[keyProvision].([]any)
	provision = slices.DeleteFunc(slices.Clone(provision), func(entry any) bool {
		e, _ := entry.(map[string]any)
		return strings.HasPrefix(text(e["script"], ""), mountScriptName)
	})
	if script != "" {
		provision = append(provision, systemScript(script))
	}
	if len(provision) > 0 {
		doc[keyProvision] = provision
	}
}

// The beginnings of vmctl's own scripts, of every version, and of the one by which the guest lets it in.
const (
	ownScript       = "#!/bin/sh\n# vmctl: "
	loginScriptHead = ownScript + "who may log in, and how the guest proves itself\n"
)

// mountScriptName is the beginning of the script that mounts additional disks, in every version.
const mountScriptName = ownScript + "mounts additional disks\n"

// isOwnScript reports whether an entry of provision is a script of vmctl's own.
func isOwnScript(entry any) bool {
	script, _ := entry.(map[string]any)
	text, _ := script["script"].(string)
	return strings.HasPrefix(text, ownScript)
}

// mountScript returns a script that makes a file system on each disk that is to be mounted and is
// blank, mounts it, and grows its file system to the size of the disk; "": there is none to mount. The guest finds its
// disks in the order of the definition, after its root disk. A disk that fails keeps no other from being mounted.
func mountScript(disks []usedDisk) string {
	script := ""
	for i, d := range disks {
		if path := d.target(); path != "" {
			script += fmt.Sprintf("mount_disk /dev/vd%s %s %s\n", letters(i+1), shellword.Quote(cmp.Or(d.fsType, "ext4")), shellword.Quote(path))
		}
	}
	if script == "" {
		return ""
	}
	return mountScriptHead + script + "exit $failed\n"
}

// mountScriptHead has the functions of mountScript. Blank is a disk whose first and last MiB were read and are
// zeros, and in which blkid of util-linux finds no signature. Lima v2.2.0 has made a partition on the disks that it has
// formatted: that is mounted.
const mountScriptHead = mountScriptName + `set -u
failed=0
copy=$(mktemp)
trap 'rm -f "$copy"' EXIT
zeros() { # DEVICE BLOCK: the MiB from that block of 64 KiB is all zeros; 2: it could not be read
  dd if="$1" of="$copy" bs=65536 skip="$2" count=16 2>/dev/null && [ "$(wc -c <"$copy")" -eq 1048576 ] || return 2
  [ -z "$(tr -d '\000' <"$copy" | head -c 1)" ]
}
blank() { # DEVICE: there is nothing in it; 1: there is something; 2: it could not be read
  size=$(blockdev --getsize64 "$1") && [ "$size" -ge 1048576 ] || return 2
  zeros "$1" 0 || return
  zeros "$1" $((size / 65536 - 16)) || return
  blkid -V 2>&1 | grep -q util-linux || return 0
  blkid -p "$1" >/dev/null 2>&1
  [ $? -eq 2 ]
}
mount_disk() { # DEVICE TYPE PATH
  blank "$1"
  case $? in
  0) case $2 in
    swap) mkswap "$1" ;;
    *) "mkfs.$2" -q "$1" ;;
    esac || { echo "vmctl: no $2 could be made on $1" >&2; failed=1; return; } ;;
  1) ;;
  *) echo "vmctl: $1 could not be read" >&2; failed=1; return ;;
  esac
  device=$1
  [ ! -e "${1}1" ] || device=${1}1
  if [ "$2" = swap ]; then
    grep -q "^$device " /proc/swaps || swapon "$device" || { echo "vmctl: $device is no swap" >&2; failed=1; }
    return
  fi
  mkdir -p "$3"
  mountpoint -q "$3" || mount "$device" "$3" || { echo "vmctl: $device could not be mounted at $3" >&2; failed=1; return; }
  [ "$device" = "$1" ] || growpart "$1" 1 >/dev/null 2>&1 || true
  case $2 in
  ext*) resize2fs "$device" >/dev/null 2>&1 || true ;;
  xfs) xfs_growfs "$3" >/dev/null 2>&1 || true ;;
  esac
}
`

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
