#!/bin/bash
# Builds OpenTofu from the Go module proxy, for the tests of its VMs: it is installed nowhere by default.
#
# usage: scripts/tofu.sh OUTDIR
#
# Makes OUTDIR/tofu; does nothing when that version is there already.
set -euo pipefail
umask 022

module=github.com/opentofu/opentofu
version=v1.11.0
sum=h1:ghYnhouGtBIr7KdpMV3THky3vxomDYDevnLAQQcnrlc= # of the sources, as Go writes it into a go.sum

die() {
  printf 'tofu: %s\n' "$*" >&2
  exit 1
}

if [ $# != 1 ]; then
  printf 'usage: %s OUTDIR\n' "${0##*/}" >&2
  exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
if [ -x "$out/tofu" ] && [ "$(cat "$out/version" 2>/dev/null)" = "$version" ]; then
  printf 'tofu: %s is up to date\n' "$out"
  exit
fi
work=$(mktemp -d "$out/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
go mod download -json "$module@$version" >facts || die "$(cat facts)"
fact() { sed -n 's/^\t"'"$1"'": "\(.*\)",*$/\1/p' facts; }
[ "$(fact Sum)" = "$sum" ] || die "the sources of $module $version have the sum $(fact Sum), not $sum"
# Its module is built in its place: go install refuses the replace lines that its go.mod has.
CGO_ENABLED=0 go build -C "$(fact Dir)" -buildvcs=false -trimpath -ldflags "-s -w -X $module/version.dev=no" -o "$work/tofu" ./cmd/tofu
echo "$version" >"$work/version"
rm -f "$out/version"
mv "$work/tofu" "$out/tofu"
mv "$work/version" "$out/version"
printf 'tofu: built %s/tofu\n' "$out"
