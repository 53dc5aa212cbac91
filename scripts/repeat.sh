#!/bin/bash
# Runs the short tests of every package N times, four of them at a time, so that each runs beside a load. What fails is
# printed at once, with its output, and ends nothing: a test that fails now and then is to be seen.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
wanted=${1:?how often}
lanes=4
root=$PWD
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Each test binary keeps the name that go test gives it, and runs in the folder of its package.
go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./... | sed '/^$/d' > "$work/packages"
while read -r dir; do
    bin=$work/bin/${dir#"$root"}
    mkdir -p "$bin"
    (cd "$dir" && go test -c -o "$bin/$(basename "$dir").test" .)
done < "$work/packages"

lane() { # NUMBER
    local n dir out=$work/out.$1
    for ((n = $1; n <= wanted; n += lanes)); do
        while read -r dir; do
            (cd "$dir" && "$work/bin/${dir#"$root"}/$(basename "$dir").test" -test.short -test.timeout=20m > "$out" 2>&1) || {
                echo "run $n of $dir failed:"
                cat "$out"
                touch "$work/failed"
            }
        done < "$work/packages"
        echo "run $n of $wanted: $(date +%T)"
    done
}

for ((i = 1; i <= lanes; i++)); do
    lane "$i" &
done
wait
[ ! -e "$work/failed" ]
