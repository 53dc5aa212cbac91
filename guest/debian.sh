#!/bin/bash
# Builds the Debian guest: a disk image of Debian 12 that cloud-init sets up at its first boot, made of packages, as
# small and as quick to boot as that gets. The tests of images boot it, without KVM too.
#
# usage: guest/debian.sh OUTDIR
#
# Makes OUTDIR/debian.qcow2; does nothing when this version of the guest is there already. As an ordinary user it needs
# user namespaces (unprivileged_userns_clone) and ids of its own in /etc/subuid. Inside: cloud-init with the NoCloud
# source, OpenSSH, sudo, git, and Docker, which a test starts. Under Lima a short script does the work of cloud-init. The guest boots by the BIOS, has one
# root file system on the last partition, which grows to the size of the disk, and lets nobody in whom the cidata disk
# does not name.
set -euo pipefail
umask 022 # whoever builds it, others boot it
export PATH=$PATH:/usr/sbin:/sbin

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
files=$here/debian # files that go into the guest as they are, and setup.sh, which is run over it
suite=bookworm
mirror=http://deb.debian.org/debian
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# What a virtual machine of virtio devices boots with; dbus is for logind, which hears the power button.
packages=(
  linux-image-cloud-amd64 initramfs-tools busybox-static lz4
  systemd-sysv udev kmod dbus
  cloud-init cloud-guest-utils e2fsprogs fdisk
  openssh-server sudo iproute2 sshfs git
  docker.io iptables
)
# Neither is read in a machine that lives for a test.
leave_out=('/usr/share/man/*' '/usr/share/locale/*' '/usr/share/doc/*' '/usr/share/info/*' '/usr/share/i18n/*')

boot_mib=40
root_mib=1100

say() { printf 'debian guest: %s\n' "$*"; }

die() {
  printf 'debian guest: %s\n' "$*" >&2
  exit 1
}

main() {
  [ $# = 1 ] || die "usage: ${0##*/} OUTDIR"
  check_machine
  version=$(guest_version)
  mkdir -p "$1"
  out=$(cd "$1" && pwd)
  if up_to_date; then
    say "$out is up to date"
    return
  fi

  # The lock is on the folder itself, so that no lock file stays behind.
  exec {lock}<"$out"
  if ! flock --nonblock "$lock"; then
    say "waiting for another build of $out"
    flock "$lock"
    if up_to_date; then
      say "$out is up to date"
      return
    fi
  fi
  rm -rf "$out"/.build.* # of a build that was killed
  # Beside the result: moving it into place must be a rename.
  work=$(mktemp -d "$out/.build.XXXXXX")
  trap 'rm -rf "$work"' EXIT

  say "installing packages into a new tree (a minute or two)"
  install_tree
  say "building the disk"
  # The tree belongs to root, and this may be somebody else.
  as_root "$0" --disk "$work"
  qemu-img convert -q -O qcow2 -c "$work/disk.raw" "$work/debian.qcow2"
  publish
  say "built $out/debian.qcow2"
}

check_machine() {
  local tool
  for tool in fakeroot flock mcopy mke2fs mkfs.vfat mmdebstrap qemu-img sfdisk sha256sum syslinux tar; do
    command -v "$tool" >/dev/null || die "needs $tool: on Debian and Ubuntu, run scripts/deps.sh image"
  done
  [ "$(dpkg --print-architecture)" = amd64 ] || die "can be built on amd64 only"
}

# guest_version prints a digest of whatever makes the guest what it is, but for the packages' versions.
guest_version() {
  (cd "$here" && find debian.sh debian -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1)
}

up_to_date() {
  [ -s "$out/debian.qcow2" ] && [ "$(cat "$out/version" 2>/dev/null)" = "$version" ]
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    fakeroot -- "$@"
  fi
}

# install_tree makes tree.tar: the packages of the machine's own mirror where it is a Debian of the suite.
install_tree() {
  local options=() path sources=()
  for path in "${leave_out[@]}"; do
    options+=(--dpkgopt="path-exclude=$path")
  done
  if grep -qs "^VERSION_CODENAME=$suite" /etc/os-release; then
    mapfile -t sources < <(find /etc/apt -name debian.sources -o -name sources.list -size +0 | head -n 1)
  fi
  if [ ${#sources[@]} = 0 ]; then
    sources=("deb [signed-by=$keyring] $mirror $suite main")
  fi
  mmdebstrap --quiet --variant=minbase --include="$(IFS=, && echo "${packages[*]}")" \
    --aptopt='APT::Install-Recommends "false"' "${options[@]}" \
    --essential-hook="cp -R '$files/root/.' \"\$1/\"" \
    --customize-hook="'$files/setup.sh' \"\$1\"" \
    "$suite" "$work/tree.tar" "${sources[@]}" || die "mmdebstrap could not install the packages"
}

# build_disk makes disk.raw of tree.tar, as root or as somebody who thinks so: first a partition with the boot loader,
# the kernel and its initial RAM disk, last the root file system.
build_disk() {
  local kernel initrd boot_at=1 root_at
  root_at=$((boot_at + boot_mib))
  cd "$1"
  mkdir tree
  tar -x -f tree.tar -C tree
  kernel=$(find tree/boot -name 'vmlinuz-*') initrd=$(find tree/boot -name 'initrd.img-*')

  truncate -s $((root_at + root_mib + 1))M disk.raw
  printf 'label: dos\nstart=%dMiB, size=%dMiB, type=c, bootable\nstart=%dMiB, size=%dMiB, type=83\n' \
    "$boot_at" "$boot_mib" "$root_at" "$root_mib" | sfdisk -q disk.raw
  # The loader's code reads how far into the disk it is.
  mkfs.vfat -F 16 -h $((boot_at * 2048)) -n VMBOOT -C boot.fat $((boot_mib * 1024)) >/dev/null
  mcopy -i boot.fat "$kernel" ::/vmlinuz
  mcopy -i boot.fat "$initrd" ::/initrd.img
  mcopy -i boot.fat "$files/syslinux.cfg" ::/syslinux.cfg
  syslinux --install boot.fat
  dd if=boot.fat of=disk.raw bs=1M seek="$boot_at" conv=notrunc status=none
  dd if=/usr/lib/syslinux/mbr/mbr.bin of=disk.raw bs=440 count=1 conv=notrunc status=none
  rm -rf tree/boot/*
  mke2fs -q -F -t ext4 -L vmroot -m 0 -E "offset=$((root_at << 20))" -d tree disk.raw "${root_mib}M"
}

# publish puts the version last: while it is missing the folder counts as not built.
publish() {
  echo "$version" >"$work/version"
  rm -f "$out/version"
  local file
  for file in debian.qcow2 version; do
    mv "$work/$file" "$out/$file"
  done
}

if [ "${1:-}" = --disk ]; then # by itself, as root
  build_disk "$2"
  exit
fi
main "$@"
