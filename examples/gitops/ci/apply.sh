#!/bin/sh
# apply.sh PLAN: carries out the plan that was reviewed, after the merge. If the world or the merged files lead to
# anything else by now, nothing is started: the exit code is 6, and a new pull request has to show the new plan.
set -eu
vmctl apply --equivalent="$1"
vmctl plan --detailed-exitcode >/dev/null # what was merged is what is there
