#!/bin/bash
# Makes targets of the Makefile one after the other, and prints how long each took. All but the first are made also
# after one has failed, so that one run shows all failures.
#
# usage: scripts/parts.sh TARGET...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# = 0 ]; then
  printf 'usage: %s TARGET...\n' "${0##*/}" >&2
  exit 2
fi
times=() failed=0
for part; do
  printf '\n== %s\n' "$part"
  begun=$SECONDS status=0
  "${MAKE:-make}" --no-print-directory "$part" || status=$?
  times+=("$(printf '%7d  %s%s' $((SECONDS - begun)) "$part" "$([ "$status" = 0 ] || echo ' FAILED')")")
  [ "$status" = 0 ] && continue
  failed=1
  [ "$part" != "$1" ] || break
done
printf '%s\n' '' 'seconds  part' "${times[@]}"
exit "$failed"
