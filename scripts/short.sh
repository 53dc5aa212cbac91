#!/bin/bash
# Runs the tests that need nothing installed, and fails if they take more than two minutes: what is run before each commit
# stays short. The time of the compiler is not counted. A minute is the goal; a quiet machine of two cores takes 80 seconds.
#
# row J65, but for the minute
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
limit=120

for module in . cmd/vmctl-lima; do
  go -C "$module" test -short -run '^$' ./... > /dev/null
done
# What tests write is in memory, where programs may run there: a disk's waits are most of the time. Others than root enter it.
in_memory() {
  tmp=$(mktemp -d -p /dev/shm 2> /dev/null) && cp "$(type -P true)" "$tmp" && "$tmp/true" 2> /dev/null
}
tmp=
trap 'rm -rf "$tmp"' EXIT
in_memory || tmp=$(mktemp -d)
chmod 755 "$tmp"
begun=$SECONDS
for module in . cmd/vmctl-lima; do
  TMPDIR=$tmp go -C "$module" test -short -count=1 ./...
done
took=$((SECONDS - begun))
printf '%d s, of at most %d on a quiet machine of two cores\n' "$took" "$limit"
[ "$took" -le "$limit" ] || {
  echo 'too long: real.Long(t), or [short] in a script, leaves a test to make test' >&2
  exit 1
}
