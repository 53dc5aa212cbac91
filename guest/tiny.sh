#!/bin/bash
# Builds the tiny guest: a kernel and an initramfs, made of the packages of the machine's own Debian or Ubuntu, that
# reach SSH within seconds by direct kernel boot, without KVM too. The quickstart and the tests boot it.
#
# usage: guest/tiny.sh OUTDIR
#
# Makes OUTDIR/vmlinuz and OUTDIR/initrd.gz; does nothing when this version of the guest is there already. Needs no
# root. Inside: busybox, the dropbear SSH server, sftp-server, git, and netcat, for dropbear forwards no unix sockets. Nobody
# can log in until an initrd is appended (a gzipped cpio archive behind initrd.gz) that brings
#   /vmctl/authorized_keys         who may log in as root
#   /vmctl/ssh_host_ed25519_key    who the guest is (OpenSSH format); without it, a new key at each boot
# On the kernel command line
#   vmctl.deaf=1                   the power button has no effect
#   vmctl.mute=1                   the SSH server never starts
# The console says VMCTL-GUEST-READY when the guest has done all that it does by itself.
set -euo pipefail
umask 022 # whoever builds it, others boot it

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rootfs=$here/tiny # files that go into the guest as they are
tree=tree         # the packages' files
root=root         # the guest's
triplet=x86_64-linux-gnu
loader="ld-linux-x86-64.so.2"

# In order of preference: the smaller kernel first.
kernels=(linux-image-cloud-amd64 linux-image-virtual linux-image-amd64 linux-image-generic)
packages=(busybox-static dropbear-bin git netcat-openbsd openssh-sftp-server)
# Of git's many dependencies these are what git alone needs; libgmp10 is for a library of dropbear's, libmd0 for one of
# netcat's. What dropbear, netcat and sftp-server name themselves is added, for it differs from release to release.
libraries=(libc6 libgmp10 libmd0 libpcre2-8-0 zlib1g)
# What a QEMU machine needs for a network card, a disk and a power button. Dependencies are found.
modules=(virtio_pci virtio_net virtio_blk button evdev)
programs=(usr/sbin/dropbear usr/lib/dropbear/dropbearconvert usr/bin/git usr/bin/nc.openbsd usr/lib/openssh/sftp-server)

say() { printf 'tiny guest: %s\n' "$*"; }

die() {
  printf 'tiny guest: %s\n' "$*" >&2
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
  # From here on all paths are relative: the loader's search path cannot hold every name that a folder may have.
  cd "$work"
  mkdir "$tree" "$root"

  say "fetching packages"
  fetch
  local deb
  for deb in debs/*.deb; do
    dpkg-deb -x "$deb" "$tree"
  done
  say "building"
  lay_out
  add_programs
  add_modules
  cp -R "$rootfs/." "$root/"
  pack
  publish
  say "built $out/vmlinuz and $out/initrd.gz"
}

check_machine() {
  local tool
  for tool in apt-cache apt-get awk cpio dpkg dpkg-deb find flock gzip sha256sum xz zstd; do
    command -v "$tool" >/dev/null || die "needs $tool: on Debian and Ubuntu, run scripts/deps.sh guest"
  done
  [ "$(dpkg --print-architecture)" = amd64 ] || die "can be built on amd64 only"
}

# guest_version prints a digest of whatever makes the guest what it is, but for the packages' versions.
guest_version() {
  (cd "$here" && find tiny.sh tiny -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1)
}

up_to_date() {
  [ -s "$out/vmlinuz" ] && [ -s "$out/initrd.gz" ] && [ "$(cat "$out/version" 2>/dev/null)" = "$version" ]
}

# fetch puts the packages into debs. The machine's own package lists may be missing (a fresh container) or name
# versions that the mirror has dropped, and only root may renew them: then it reads lists of its own.
fetch() {
  apt=()
  if [ "$(id -u)" = 0 ]; then
    apt+=(-o APT::Sandbox::User=root) # the user that apt would switch to may not write here
  fi
  if ! download 2>apt.log; then
    say "the machine's package lists do not serve: reading new ones"
    mkdir -p apt/lists/partial apt/cache/archives/partial
    apt+=(-o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache")
    if ! apt-get "${apt[@]}" -qq update 2>apt.log; then
      cat apt.log >&2
      die "cannot read package lists (apt-get update)"
    fi
    download || die "cannot fetch the packages"
  fi
}

download() {
  rm -rf debs
  mkdir debs
  local kernel named
  kernel=$(kernel_packages) || return
  named=$(depends_on dropbear-bin '^z?lib' && depends_on openssh-sftp-server '^z?lib' && depends_on netcat-openbsd '^lib')
  # shellcheck disable=SC2086 # lists of names
  (cd debs && apt-get "${apt[@]}" -qq download $kernel $named "${packages[@]}" "${libraries[@]}")
}

# kernel_packages prints the package that has the kernel, and those with its modules where the two are apart.
kernel_packages() {
  local meta image
  for meta in "${kernels[@]}"; do
    image=$(depends_on "$meta" '^linux-image-[0-9]' | head -n 1)
    if [ -n "$image" ]; then
      echo "$image" "$(depends_on "$image" '^linux-(modules|binary)-[0-9]' | tr '\n' ' ')"
      return
    fi
  done
  printf 'tiny guest: none of these kernels is known to apt: %s\n' "${kernels[*]}" >&2
  return 1
}

depends_on() {
  apt-cache "${apt[@]}" depends "$1" 2>/dev/null | awk -v want="$2" '$1 ~ /Depends:$/ && $2 ~ want {print $2}'
}

# lay_out makes the folders, with the merged /usr that both distributions have.
lay_out() {
  local dir
  mkdir -p "$root"/{dev,etc/dropbear,proc,root/.ssh,run,sys,tmp,var/log,usr/{bin,sbin,lib/modules,lib64,share/git-core/templates}}
  for dir in bin sbin lib lib64; do
    ln -s "usr/$dir" "$root/$dir"
  done
  ln -s ../run "$root/var/run"
  chmod 700 "$root/root" "$root/root/.ssh"
  chmod 1777 "$root/tmp"
}

# in_tree prints where the packages have usr/PATH: some of them still ship it outside /usr.
in_tree() {
  local path
  for path in "$tree/$1" "$tree/${1#usr/}"; do
    if [ -e "$path" ]; then
      echo "$path"
      return
    fi
  done
  die "no package brought $1"
}

add_programs() {
  local program applet
  install -m 755 "$(in_tree usr/bin/busybox)" "$root/usr/bin/busybox"
  for program in "${programs[@]}"; do
    install -D -m 755 "$(in_tree "$program")" "$root/$program"
    add_libraries "$root/$program"
  done
  # Since glibc 2.34 this is a part of libc, before that it is loaded by name at run time.
  install -D -m 644 -t "$root/usr/lib/$triplet" "$(in_tree "usr/lib/$triplet/libnss_files.so.2")"

  ln -s ../lib/dropbear/dropbearconvert "$root/usr/bin/"
  ln -s openssh/sftp-server "$root/usr/lib/sftp-server" # where SSHFS looks
  # All that a push and a fetch over SSH call is in git itself, under these names.
  install -d "$root/usr/lib/git-core"
  ln -s ../../bin/git "$root/usr/lib/git-core/git"
  for program in git-receive-pack git-upload-archive git-upload-pack; do
    ln -s git "$root/usr/bin/$program"
  done
  for applet in $("$root/usr/bin/busybox" --list); do
    [ -e "$root/usr/bin/$applet" ] || ln -s busybox "$root/usr/bin/$applet"
  done
}

# add_libraries copies what the loader finds for a program, so that a library that no package brings is noticed here.
add_libraries() {
  local ld name path list
  ld=$(in_tree "usr/lib/$triplet/$loader")
  install -D -m 755 "$ld" "$root/usr/lib64/$loader"
  list=$("$ld" --inhibit-cache --library-path "$tree/usr/lib/$triplet:$tree/lib/$triplet" --list "$1") ||
    die "a library of ${1#"$root"} is missing"
  while read -r name path; do
    case $path in
    "$tree"/*) [ -e "$root/usr/lib/$triplet/$name" ] || install -D -m 644 "$path" "$root/usr/lib/$triplet/$name" ;;
    *) die "no package brought $name, which ${1#"$root"} needs" ;;
    esac
  done < <(awk '$2 == "=>" {print $1, $3}' <<<"$list")
}

add_modules() {
  local name
  release=$(cd "$tree" && find . -path '*/lib/modules/*/kernel' -prune | head -n 1)
  release=$tree/${release%/kernel}
  : >"$root/usr/lib/modules/order"
  for name in "${modules[@]}"; do
    add_module "$name"
  done
}

# add_module adds a module behind those that it depends on, unpacked (busybox cannot), once.
add_module() {
  local file target="$1.ko" depends name
  [ ! -e "$root/usr/lib/modules/$target" ] || return 0
  file=$(find "$release/kernel" -name "${1//_/[-_]}.ko*" | head -n 1)
  if [ -z "$file" ]; then
    # A kernel that has it built in needs no file.
    grep -Eqs "/${1//_/[-_]}\.ko$" "$release/modules.builtin" || die "the kernel has no module $1"
    return 0
  fi
  case $file in
  *.xz) xz -dc "$file" ;;
  *.zst) zstd -dqc "$file" ;;
  *.gz) gzip -dc "$file" ;;
  *) cat "$file" ;;
  esac >"$root/usr/lib/modules/$target"
  depends=$(tr '\0' '\n' <"$root/usr/lib/modules/$target" | sed -n 's/^depends=//p')
  for name in ${depends//,/ }; do
    add_module "$name"
  done
  echo "$target" >>"$root/usr/lib/modules/order"
}

# pack gives the same bytes for the same packages: an unchanged guest must not look like a changed one.
pack() {
  find "$root" -exec touch -h -d @0 {} +
  (cd "$root" && find . -mindepth 1 -print0 | LC_ALL=C sort -z |
    cpio --null --create --format newc --reproducible --owner 0:0 --quiet) | gzip -n >initrd.gz
  install -m 644 "$(find "$tree/boot" -name 'vmlinuz-*' | head -n 1)" vmlinuz
}

# publish puts the version last: while it is missing the folder counts as not built.
publish() {
  echo "$version" >version
  rm -f "$out/version"
  local file
  for file in vmlinuz initrd.gz version; do
    mv "$file" "$out/$file"
  done
}

main "$@"
