#!/bin/bash
# Searches N random edits and worlds for one that breaks a law (search/), on a simulated host: three quarters of them edits
# of specs, the rest worlds that others change, with faults and kills, and some states that are lost. Each processor
# searches for itself, in rounds with seeds of their own. A broken law is printed with its seed and its smallest case, and
# ends the search. The sums of the finished rounds are printed on every exit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
wanted=${1:?how many edits and worlds}
shares=$(nproc)
rounds=$((wanted / shares / 10000 + 1))
work=$(mktemp -d -p "$([ -d /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")")

# The sums of what the searches report: numbers that begin a line, under a heading, and those in a heading.
sums() {
    find "$work" -name "*.out" -exec cat {} + | awk '
        /check.go:[0-9]+: [0-9]+ edits, by class:/ { edits += $2; part = "edits, by class"; next }
        /check.go:[0-9]+: [0-9]+ applies with faults/ { both += $2; failed += $11; killed += $13; part = "by hand"; next }
        /check.go:[0-9]+: [0-9]+ changes where no policy/ { changes += $2; part = "blocked where no policy forbids anything"; next }
        /check.go:[0-9]+: blocked where policies/ { part = "blocked where policies forbid something or others meddle"; next }
        /^ +[0-9]+ / && part != "" { n = $1; sub(/^ +[0-9]+ /, ""); sum[part "\t" $0] += n; next }
        /^[^ ]/ { part = "" }
        END {
            printf "%d edits and worlds; %d applies with faults and a kill to come, %d failed, %d were killed; %d changes where no policy forbids anything\n", edits, both, failed, killed, changes
            for (key in sum) printf "%s\t%d\n", key, sum[key] | "sort"
        }'
}

finish() {
    # shellcheck disable=SC2046 # one word each
    kill $(jobs -p) 2>/dev/null || true
    wait
    sums || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
go test -c -o "$work/sim.test" ./providers/sim

search() { # NAME TEST CASES
    GOGC=1600 GOMAXPROCS=1 "$work/sim.test" -test.run "^$2\$" -test.v -test.timeout 0 -rapid.checks="$3" -rapid.nofailfile \
        -rapid.shrinktime=2m -search.dir="$work" >"$work/$1.out" 2>&1 &
    trap 'kill $!; exit' TERM
    wait $! || touch "$work/failed"
}

# A case of edits has one and a half, one of worlds has two.
share() { # NUMBER
    local n=$((wanted / shares / rounds))
    for ((r = 1; r <= rounds; r++)); do
        [ ! -e "$work/failed" ] || return 0
        search "$1.$r.edits" TestEditsOfSpecs $((n / 2 + 1))
        search "$1.$r.worlds" TestWorldsOfOthers $((n / 8 + 1))
        search "$1.$r.lost" TestLostStates $((n / 50 + 1))
        [ "$1" != 1 ] || echo "round $r of $rounds: $(date +%H:%M:%S)"
    done
}

cd providers/sim # where its tests find what they read
pids=()
for ((i = 1; i <= shares; i++)); do
    share "$i" &
    pids+=($!)
done
wait "${pids[@]}"

if [ -e "$work/failed" ]; then
    for out in "$work"/*.out; do
        grep -q '^PASS' "$out" || grep -av '\[rapid\] draw' "$out"
    done
    exit 1
fi
