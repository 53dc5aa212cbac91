#!/bin/sh
# Sets up the tree of the Debian guest, whose packages are installed.
#
# usage: setup.sh TREE
set -eu

root=$1

printf '%s\n' virtio_pci virtio_blk virtio_scsi virtio_net ext4 sr_mod isofs >>"$root/etc/initramfs-tools/modules"
chroot "$root" update-initramfs -u

echo 'LABEL=vmroot / ext4 noatime,errors=remount-ro 0 0' >"$root/etc/fstab"
echo debian >"$root/etc/hostname"
: >"$root/etc/machine-id" # each machine gets its own
rm -f "$root"/etc/ssh/ssh_host_*

systemctl --root="$root" --quiet enable systemd-networkd.service ssh.service lima-cidata.service lima-boot.service
# An engine takes its time to start: a test that needs it says so.
systemctl --root="$root" --quiet disable docker.service docker.socket containerd.service
# Nothing here waits for a network that is more than up, and nothing looks after a machine that lives for a test.
systemctl --root="$root" --quiet mask systemd-networkd-wait-online.service \
  apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
  e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-tmpfiles-clean.timer \
  dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount \
  sys-fs-fuse-connections.mount modprobe@.service systemd-binfmt.service systemd-pstore.service

rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/var/log/*.log
