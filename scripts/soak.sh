#!/bin/bash
# Searches N random cases for one that breaks a law (search/), on a simulated host: three quarters of them edits of
# specs, the rest worlds that others change, with faults and kills. Each processor has its share. A broken law is
# printed with its seed and its smallest case.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cases=${1:?how many cases}
shares=$(nproc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go test -c -o "$work/sim.test" ./providers/sim

share() { # NUMBER TEST CASES
    GOGC=400 GOMAXPROCS=2 "$work/sim.test" -test.run "^$2\$" -test.v -test.timeout 0 -rapid.checks="$3" -rapid.nofailfile \
        -rapid.shrinktime=2m >"$work/$1.out" 2>&1
}

cd providers/sim # where its tests find what they read
pids=()
for ((i = 0; i < shares; i++)); do
    (
        share "edits$i" TestEditsOfSpecs $((cases * 3 / 4 / shares + 1)) &&
            share "worlds$i" TestWorldsOfOthers $((cases / 4 / shares + 1))
    ) &
    pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do
    wait "$pid" || failed=1
done
for out in "$work"/*.out; do
    grep -av '\[rapid\] draw' "$out"
done
exit $failed
