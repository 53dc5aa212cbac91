#!/bin/bash
# Sees to it that a daemon answers on qemu:///system, for root. An ordinary user needs none: vmctl uses
# qemu:///session then, and libvirt starts that user's daemon by itself.
#
# usage: scripts/libvirtd.sh
#
# Silent when a daemon answers. Where systemd runs, it is asked to start libvirt; where no service manager does (a
# container, a chroot), the daemons are started here and stay until somebody ends them.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin

# Of the one daemon for everything, and of the one for QEMU alone that newer systems may have in its place.
sockets=(/run/libvirt/libvirt-sock /run/libvirt/virtqemud-sock)
wait_seconds=20

die() {
  printf 'libvirtd: %s\n' "$*" >&2
  exit 1
}

main() {
  [ "$(id -u)" = 0 ] || return 0
  [ -d /run/systemd/system ] || share_kvm
  ! system_answers || return 0

  if [ -d /run/systemd/system ]; then
    start_units
  else
    start_daemons
  fi
  local deadline=$((SECONDS + wait_seconds))
  until system_answers; do
    [ "$SECONDS" -lt "$deadline" ] ||
      die "started, but nobody answers on ${sockets[*]} after $wait_seconds s. Look at what 'libvirtd -v' says"
    sleep 0.2
  done
}

# share_kvm does what udev's rule for /dev/kvm does, where no udev runs. Without, libvirt probes QEMU as root, who may
# open the device, finds later that the user it runs QEMU as may not, and so probes again at every call: 4 s each.
share_kvm() {
  [ -c /dev/kvm ] && getent group kvm >/dev/null || return 0
  [ "$(stat -c %G:%a /dev/kvm)" != kvm:660 ] || return 0
  echo "+ chgrp kvm /dev/kvm && chmod 660 /dev/kvm"
  chgrp kvm /dev/kvm && chmod 660 /dev/kvm || echo "libvirtd: /dev/kvm stays as it is; libvirt may be slow" >&2
}

system_answers() {
  local socket
  for socket in "${sockets[@]}"; do
    ! answers "$socket" || return 0
  done
  return 1
}

# answers connects: a socket file alone may be left over from a daemon that was killed. perl is a part of every
# Debian and Ubuntu, while virsh and socat are not.
answers() {
  [ -S "$1" ] && perl -MIO::Socket::UNIX -e 'exit !IO::Socket::UNIX->new(Peer => $ARGV[0])' "$1"
}

start_units() {
  local unit
  for unit in libvirtd.socket libvirtd.service virtqemud.socket virtqemud.service; do
    if systemctl cat "$unit" >/dev/null 2>&1; then
      echo "+ systemctl start $unit"
      systemctl start "$unit" || die "systemd could not start $unit: see 'journalctl -u $unit'"
      return
    fi
  done
  die "libvirt's daemon is not installed: run scripts/deps.sh run"
}

start_daemons() {
  command -v libvirtd >/dev/null || die "libvirt's daemon is not installed: run scripts/deps.sh run"
  # virtlogd keeps what guests say on their consoles. It may not exist apart, and libvirtd says so if it needs it.
  if command -v virtlogd >/dev/null && ! answers /run/libvirt/virtlogd-sock; then
    start virtlogd
  fi
  start libvirtd
}

# start runs a daemon in the background. That one of the same name is starting already is not an error: whether it
# answers decides.
start() {
  echo "+ $1 -d"
  (
    cd /
    # A pipe that whoever called us reads to its end must not be held open by a daemon.
    for fd in /proc/self/fd/*; do
      fd=${fd##*/}
      [ "$fd" -le 2 ] || [ "$fd" = 255 ] || exec {fd}>&-
    done
    "$1" -d </dev/null
  ) || true
}

main "$@"
