#!/bin/bash
# Copies Lima's built-in templates, of the version that vmctl's packages have, for `template = "template:NAME"`.
#
# usage: scripts/lima-templates.sh OUTDIR
#
# Replaces OUTDIR once the copy is whole: after a failure it is as it was.
set -euo pipefail
umask 022

module=github.com/lima-vm/lima/v2
linked=v2.2.0 # the version of Lima whose links are below

if [ $# != 1 ]; then
  printf 'usage: %s OUTDIR\n' "${0##*/}" >&2
  exit 2
fi
mkdir -p "$(dirname "$1")"
out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../cmd/vmctl-lima"
version=$(awk -v module="$module" '$1 == module {print $2}' go.mod)
if [ "$version" != "$linked" ]; then
  printf '%s: it has the links of the templates of Lima %s, and cmd/vmctl-lima/go.mod has Lima %s: ' "${0##*/}" "$linked" "$version" >&2
  # shellcheck disable=SC2016 # no expansion
  printf 'bring the links and the variable `linked` in it up to date\n' >&2
  exit 1
fi
go mod download "$module"
source=$(go list -m -f '{{.Dir}}' "$module")/templates
work=$(mktemp -d "$(dirname "$out")/.lima-templates.XXXXXX")
back() { # what was there comes back if nothing took its place
  if [ -e "$work/old" ] && [ ! -e "$out" ]; then mv "$work/old" "$out"; fi
  rm -rf "$work"
}
trap back EXIT
new=$work/new
cp -R "$source" "$new"
chmod -R u+w "$new"

# A module has no symbolic links: these are those of Lima, where many templates have a second name.
link() { # FILE NAME
  cp "$new/$1.yaml" "$new/$2.yaml"
}
link _images/fedora-44 _images/fedora
link _images/freebsd-15 _images/freebsd
link _images/macos-26 _images/macos
link _images/opensuse-leap-16 _images/opensuse-leap
link _images/ubuntu-26.04 _images/ubuntu
link _images/ubuntu-26.04 _images/ubuntu-lts
link almalinux-10 almalinux
link alpine-3.23 alpine
link centos-stream-9 centos-stream
link debian-13 debian
link experimental/almalinux-kitten-10 experimental/almalinux-kitten
link experimental/freebsd-16 experimental/freebsd-current
link experimental/ubuntu-26.10 experimental/ubuntu-next
link fedora-44 fedora
link freebsd-15 freebsd
link linuxbrew homebrew-linux
link macos-26 macos
link opensuse-leap-16 opensuse-leap
link opensuse-leap opensuse
link oraclelinux-10 oraclelinux
link rocky-10 rocky
link ubuntu-26.04 ubuntu
link ubuntu-26.04 ubuntu-lts
link windows-11 windows

if [ -e "$out" ]; then
  mv "$out" "$work/old"
fi
mv "$new" "$out"
