#!/bin/bash
# Builds limactl, Lima's own program, of the version that vmctl's packages have. Tests change instances with it behind
# vmctl's back.
#
# usage: scripts/limactl.sh OUTDIR
#
# Makes OUTDIR/limactl; does nothing when that version is there already.
set -euo pipefail
umask 022

module=github.com/lima-vm/lima/v2

if [ $# != 1 ]; then
  printf 'usage: %s OUTDIR\n' "${0##*/}" >&2
  exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../cmd/vmctl-lima"
version=$(awk -v module="$module" '$1 == module {print $2}' go.mod)
if [ -x "$out/limactl" ] && [ "$(cat "$out/version" 2>/dev/null)" = "$version" ]; then
  printf 'limactl: %s is up to date\n' "$out"
  exit
fi
work=$(mktemp -d "$out/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags "-s -w -X $module/pkg/version.Version=$version" \
  -o "$work/limactl" "$module/cmd/limactl"
echo "$version" >"$work/version"
rm -f "$out/version"
mv "$work/limactl" "$out/limactl"
mv "$work/version" "$out/version"
printf 'limactl: built %s/limactl\n' "$out"
