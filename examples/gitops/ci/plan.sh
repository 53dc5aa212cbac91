#!/bin/sh
# plan.sh PLAN COMMENT: keeps a plan of the files in this folder, and writes it as Markdown for a comment. The comment
# names the plan by its checksum, which apply.sh demands.
set -eu
vmctl plan --out="$1" >/dev/null
{
    echo "<!-- vmctl plan -->" # the pipeline updates the comment that begins so
    vmctl show --format=markdown --max-bytes=60000 "$1"
    printf '\nPlan %s\n' "$(sha256sum "$1" | cut -c1-12)"
} >"$2"
