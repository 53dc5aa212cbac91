#!/bin/bash
# Tests what decides, acts, stops, locks and remembers: no file of these packages may be covered by its tests less
# than scripts/coverage.txt says. Not every run takes every turn, above all on a machine that is slower or busy: UPDATE=1
# raises the floors to four points below what is covered now (and lowers none), and of small files, of which four points
# are less than a statement, two statements may be missed beside.
#
# usage: scripts/coverage.sh COMMAND...    (such as go test: it gets the packages and what profiles them)
#        scripts/coverage.sh --packages    lists the packages
#
# row J63
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(./executor ./planner ./state ./providers/stop ./providers/lima ./internal/process ./internal/lockfile ./internal/atomicfile
  ./internal/parallel ./internal/yamltext)
floors=scripts/coverage.txt
if [ "${1:-}" = --packages ]; then
  exec go list "${packages[@]}"
fi
profile=$(mktemp)
trap 'rm -f "$profile"' EXIT

[ $# -gt 0 ] || set -- go test
"$@" -coverprofile="$profile" -coverpkg="$(IFS=,; echo "${packages[*]}")" "${packages[@]}"

# A block that several test binaries know stands in the profile several times: any of them counts.
covered() {
  awk -F '[: ]' '
    NR > 1 { block = $1 ":" $2; statements[block] = $3; file[block] = $1; if ($4 > 0) hit[block] = 1 }
    END {
      for (b in statements) { all[file[b]] += statements[b]; if (b in hit) done[file[b]] += statements[b] }
      for (f in all) { name = f; sub(/^vmctl\//, "", name); printf "%d %s %d %d\n", 100 * done[f] / all[f], name, done[f], all[f] }
    }' "$profile" | sort -k 2
}

if [ "${UPDATE:-}" = 1 ]; then
  covered | awk -v floors="$floors" '
    BEGIN { while ((getline line < floors) > 0) { split(line, f, " "); floor[f[2]] = f[1] } }
    { now = $1 > 4 ? $1 - 4 : 0; print (now > floor[$2] + 0 ? now : floor[$2] + 0), $2 }' > "$profile.new"
  mv "$profile.new" "$floors"
  exit
fi

covered | awk -v floors="$floors" '
  BEGIN { while ((getline line < floors) > 0) { split(line, f, " "); floor[f[2]] = f[1] } }
  !($2 in floor) { printf "%s has no floor: UPDATE=1 scripts/coverage.sh writes one\n", $2; bad = 1 }
  $3 + 2 < floor[$2] * $4 / 100 { printf "%s: %d%% of its statements are tested, and its floor is %d%%\n", $2, $1, floor[$2]; bad = 1 }
  END { exit bad }'
