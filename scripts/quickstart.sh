#!/bin/bash
# The first five minutes with vmctl: installs what is missing, builds vmctl and a small guest, and takes
# examples/quickstart from a file to a running virtual machine. Run again, it goes on from what is there.
#
# usage: make quickstart      VMCTL_QUICKSTART_DIR=DIR puts the files elsewhere than ~/vmctl-quickstart
#
# An ordinary user's machine is made in that user's own libvirt (qemu:///session), root's in qemu:///system.
set -euo pipefail

dir=$(realpath --canonicalize-missing "${VMCTL_QUICKSTART_DIR:-$HOME/vmctl-quickstart}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
vmctl=$PWD/bin/vmctl

say() { printf '\n# %s\n' "$*"; }

die() {
  printf 'quickstart: %s\n' "$*" >&2
  exit 1
}

# run shows a command as one would type it, and runs it.
run() {
  printf '$'
  printf ' %q' "$@"
  printf '\n'
  "$@"
}

say "What vmctl needs: Go packages, QEMU, libvirt"
run scripts/deps.sh build run guest
run scripts/libvirtd.sh
# The guest does not wait for the compiler.
guest=$(mktemp)
trap 'rm -f "$guest"' EXIT
guest/tiny.sh "$dir/guest" >"$guest" 2>&1 &
run make --no-print-directory vmctl
wait $! || {
  cat "$guest" >&2
  die "the guest could not be built"
}

say "Your files, in $dir"
# The folder is yours after the first copy: what you changed in it stays.
if [ ! -e "$dir/main.vmctl.hcl" ]; then
  run mkdir -p "$dir"
  run cp examples/quickstart/main.vmctl.hcl "$dir/"
fi
cat "$guest"

run cd "$dir"
run "$vmctl" init

say "What would be done"
run "$vmctl" plan

say "Doing it"
run "$vmctl" apply --auto-approve

say "Inside the machine"
run "$vmctl" vm exec dev -- uname -a

say "A second plan has nothing to do"
status=0
run "$vmctl" plan --detailed-exitcode || status=$?
case $status in
0) ;;
2) die "the second plan still has changes, which is a mistake of vmctl's: please report it, with the plan above" ;;
*) exit "$status" ;;
esac

say "The machine runs until you stop it. Edit $dir/main.vmctl.hcl and plan again, or:"
printf '%q -C %q vm shell dev\n' "$vmctl" "$dir"
printf '%q -C %q destroy\n' "$vmctl" "$dir"
