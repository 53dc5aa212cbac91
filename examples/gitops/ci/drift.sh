#!/bin/sh
# drift.sh REPORT: looks for drift, and writes it as Markdown. If there is any, the pipeline opens an issue, or a pull
# request with what `vmctl drift --adopt=ADDR` wrote. The exit code is 0 without drift, 2 with drift.
set -u
ignore=
[ ! -f drift-ignore.hcl ] || ignore=--ignore-file=drift-ignore.hcl
vmctl drift --format=markdown ${ignore:+"$ignore"} >"$1"
