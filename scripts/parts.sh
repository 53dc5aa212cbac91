#!/bin/bash
# Makes targets of the Makefile one after the other, up to the first that fails, and prints how long each took.
#
# usage: scripts/parts.sh TARGET...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# = 0 ]; then
  printf 'usage: %s TARGET...\n' "${0##*/}" >&2
  exit 2
fi
times=()
show_times() { printf '%s\n' '' 'seconds  part' "${times[@]}"; }
trap show_times EXIT

for part; do
  printf '\n== %s\n' "$part"
  begun=$SECONDS status=0
  "${MAKE:-make}" --no-print-directory "$part" || status=$?
  times+=("$(printf '%7d  %s%s' $((SECONDS - begun)) "$part" "$([ "$status" = 0 ] || echo ' FAILED')")")
  [ "$status" = 0 ] || exit "$status"
done
