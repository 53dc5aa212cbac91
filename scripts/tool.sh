#!/bin/bash
# Builds a program of others from the Go module proxy, for the tests that run it: it is installed nowhere by default.
#
# usage: scripts/tool.sh tofu|conftest OUTDIR
#
# Makes OUTDIR/tofu or OUTDIR/conftest; does nothing when that version is there already.
set -euo pipefail
umask 022

die() {
  printf 'tool: %s\n' "$*" >&2
  exit 1
}

usage() {
  printf 'usage: %s tofu|conftest OUTDIR\n' "${0##*/}" >&2
  exit 2
}

[ $# = 2 ] || usage
name=$1
# The sums are of the sources, as Go writes them into a go.sum.
case $name in
tofu)
  module=github.com/opentofu/opentofu version=v1.11.0 sum=h1:ghYnhouGtBIr7KdpMV3THky3vxomDYDevnLAQQcnrlc= package=./cmd/tofu
  flags="-s -w -X $module/version.dev=no"
  ;;
conftest)
  module=github.com/open-policy-agent/conftest version=v0.71.1 sum=h1:M6MogKBsr76V7WVTgGgyGvKUsDtzFA3gaOrl7ciyqvQ= package=.
  flags="-s -w"
  ;;
*) usage ;;
esac
mkdir -p "$2"
out=$(cd "$2" && pwd)
if [ -x "$out/$name" ] && [ "$(cat "$out/version" 2>/dev/null)" = "$version" ]; then
  printf '%s: %s is up to date\n' "$name" "$out"
  exit
fi
work=$(mktemp -d "$out/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
go mod download -json "$module@$version" >facts || die "$(cat facts)"
fact() { sed -n 's/^\t"'"$1"'": "\(.*\)",*$/\1/p' facts; }
[ "$(fact Sum)" = "$sum" ] || die "the sources of $module $version have the sum $(fact Sum), not $sum"
# Its module is built in its place: go install refuses the replace lines that a go.mod may have.
CGO_ENABLED=0 go build -C "$(fact Dir)" -buildvcs=false -trimpath -ldflags "$flags" -o "$work/$name" "$package"
echo "$version" >"$work/version"
rm -f "$out/version"
mv "$work/$name" "$out/$name"
mv "$work/version" "$out/version"
printf '%s: built %s/%s\n' "$name" "$out" "$name"
