#!/bin/sh
# drift-metrics.sh SPEC FOLDER: looks for drift in the project in SPEC, and leaves it as FOLDER/vmctl.prom, which
# Prometheus' node exporter reads. The file is replaced as a whole. The exit code is that of vmctl drift.
set -u
new="$2/.vmctl.prom.new"
vmctl -C "$1" drift --format=prometheus >"$new"
code=$?
case $code in
0 | 2 | 6) mv "$new" "$2/vmctl.prom" ;; # 2: there is drift; 6: something could not be read; the metrics tell both
*) rm -f "$new" ;;
esac
exit "$code"
