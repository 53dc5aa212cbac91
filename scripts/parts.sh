#!/bin/bash
# Makes targets of the Makefile one after the other, and prints how long each took. Only a failed build ends it: else all
# are made, so that one run shows all failures. The last lines of all say what failed and how; the output
# of each part is kept in bin/check.
#
# usage: scripts/parts.sh TARGET...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# = 0 ]; then
  printf 'usage: %s TARGET...\n' "${0##*/}" >&2
  exit 2
fi
logs=bin/check
mkdir -p "$logs"
printf 'machine: %s cores, %s, /dev/kvm %s\n' "$(nproc 2>/dev/null || echo '?')" "$(awk '/^MemTotal/ {printf "%d MiB", $2 / 1024}' /proc/meminfo 2>/dev/null)" \
  "$([ -e /dev/kvm ] && echo there || echo missing)"
times=() failed=()
for part; do
  printf '\n== %s\n' "$part"
  begun=$SECONDS status=0
  "${MAKE:-make}" --no-print-directory "$part" 2>&1 | tee "$logs/$part.log" || status=$?
  times+=("$(printf '%7d  %s%s' $((SECONDS - begun)) "$part" "$([ "$status" = 0 ] || echo ' FAILED')")")
  [ "$status" = 0 ] && continue
  failed+=("$part")
  [ "$part" != build ] || break
done
printf '%s\n' '' 'seconds  part' "${times[@]}"
[ "${#failed[@]}" = 0 ] && exit
for part in "${failed[@]}"; do
  printf '\n== %s FAILED: %s\n' "$part" "$logs/$part.log"
  grep -E '^ *(--- FAIL|FAIL|panic:)' "$logs/$part.log" | head -n 15 || true
  tail -n $((30 / ${#failed[@]})) "$logs/$part.log"
done
exit 1
