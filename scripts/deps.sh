#!/bin/bash
# Installs what is missing of the named sets, through apt; silent when nothing is.
#
# usage: scripts/deps.sh SET...
#   build   what compiles vmctl
#   run     what vmctl drives: QEMU, and libvirt with its daemon and what that needs for networks
#   lima    what vmctl-lima runs: QEMU and OpenSSH
#   guest   what builds the tiny guest
#   image   what builds the Debian guest
#   engine  a container engine, and what is in the images of its tests
#   test    what the tests call
#   lint    what checks the scripts
#
# As an ordinary user it asks sudo, where there is one. Where no service manager runs (a container, a chroot) no
# service is started by the packages; scripts/libvirtd.sh starts libvirt's daemon there.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin # an ordinary user's path may lack them

go_wanted=1.26

# The libvirt library is not linked but opened at run time, hence no -dev package.
build=(ca-certificates gcc git libc6-dev make)
# libvirt-daemon-system brings the user that QEMU runs as under qemu:///system; a session needs the rest only.
run=(dnsmasq-base iptables libvirt-daemon libvirt-daemon-driver-qemu libvirt-daemon-system libvirt0 qemu-system-x86 qemu-utils)
# openssh-client brings ssh and ssh-keygen, openssh-sftp-server serves mounted folders to the guest.
lima=(openssh-client openssh-sftp-server qemu-system-x86 qemu-utils)
guest=(cpio xz-utils zstd)
image=(debian-archive-keyring dosfstools e2fsprogs fakeroot fdisk mmdebstrap mtools qemu-utils syslinux syslinux-common uidmap)
engine=(busybox-static docker.io e2fsprogs iproute2)
# postgresql keeps states of Terraform; sshfs mounts workspaces, openssh-sftp-server serves their files on a simulated host; netcat, perl and python relay sockets;
# virsh (libvirt-clients) and ip (iproute2) act behind vmctl's back.
test=(bash-completion fish fuse3 git iproute2 libvirt-clients netcat-openbsd openssh-client openssh-sftp-server passwd perl-base postgresql python3-minimal sshfs util-linux zsh)
lint=(shellcheck)

die() {
  printf 'deps: %s\n' "$*" >&2
  exit 1
}

main() {
  if [ "${1:-}" = --packages ]; then # through sudo, by itself
    shift
    install_packages "$@"
    return
  fi
  [ $# -gt 0 ] || die "usage: ${0##*/} build|run|lima|guest|image|engine|test|lint ..."
  local set wanted=() lacking=()
  for set; do
    case $set in
    build)
      check_go
      wanted+=("${build[@]}")
      ;;
    run) wanted+=("${run[@]}") ;;
    lima) wanted+=("${lima[@]}") ;;
    guest) wanted+=("${guest[@]}") ;;
    image) wanted+=("${image[@]}") ;;
    engine) wanted+=("${engine[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    lint) wanted+=("${lint[@]}") ;;
    *) die "no set \"$set\": there are build, run, lima, guest, image, engine, test and lint" ;;
    esac
  done
  command -v apt-get >/dev/null ||
    die "installs through apt (Debian, Ubuntu). Elsewhere, install by hand what these have: ${wanted[*]}"
  mapfile -t lacking < <(missing "${wanted[@]}")
  [ ${#lacking[@]} -gt 0 ] || return 0

  echo "deps: missing: ${lacking[*]}"
  if [ "$(id -u)" = 0 ]; then
    install_packages "${lacking[@]}"
  elif command -v sudo >/dev/null; then
    echo "+ sudo $0 --packages ${lacking[*]}"
    sudo "$0" --packages "${lacking[@]}" || die "not installed. As root, type: $(apt_line "${lacking[@]}")"
  else
    die "only root can install them, and there is no sudo. As root, type: $(apt_line "${lacking[@]}")"
  fi
}

# check_go looks for Go, which comes from its own site: distributions have older ones. Since 1.21 any Go fetches the
# version that go.mod asks for.
check_go() {
  local found
  command -v go >/dev/null ||
    die "Go is missing: install Go $go_wanted or newer from https://go.dev/dl/ and put its bin folder on the PATH"
  found=$(go env GOVERSION 2>/dev/null)
  found=${found#go}
  [ "$(printf '%s\n' 1.21 "$found" | sort --version-sort | head -n 1)" = 1.21 ] ||
    die "Go ${found:-of an unknown version} is too old: install Go $go_wanted or newer from https://go.dev/dl/"
}

# missing prints those of the packages that are not installed.
missing() {
  local present
  # dpkg-query fails when it has never heard of one of them; the answer about the others stands.
  # shellcheck disable=SC2016 # dpkg-query's own variables
  present=$(dpkg-query --show --showformat '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p') ||
    true
  comm -23 <(printf '%s\n' "$@" | sort -u) <(sort -u <<<"$present")
}

apt_line() {
  echo "apt-get update && apt-get install --no-install-recommends -y $*"
}

install_packages() {
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
  # Another run, or the system's own upgrade, may hold the lock for a while.
  local apt=(apt-get -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
  hold_services
  printf '+ %s\n' "$(apt_line "$@")"
  "${apt[@]}" -qq update || die "cannot read the package lists (apt-get update)"
  "${apt[@]}" install --no-install-recommends -qq -y "$@" </dev/null || die "apt-get could not install: $*"
}

# hold_services keeps packages from starting services where no service manager runs, until this script ends. A
# policy that is there already is left to decide.
hold_services() {
  local policy=/usr/sbin/policy-rc.d mark="# vmctl: scripts/deps.sh"
  [ ! -d /run/systemd/system ] || return 0
  if [ -e "$policy" ] && ! grep -qsF "$mark" "$policy"; then
    return 0
  fi
  printf '#!/bin/sh\n%s is installing packages\nexit 101\n' "$mark" >"$policy"
  chmod 755 "$policy"
  # shellcheck disable=SC2064 # the value of now
  trap "rm -f '$policy'" EXIT
}

main "$@"
