# A virtual machine of Lima: made from an image, with a disk of its own, a folder
# of this host, and a port. It needs QEMU (`scripts/deps.sh lima` installs that)
# and no limactl.
#
#   vmctl plan      what would change, and why; changes nothing
#   vmctl apply     changes it, after asking
#   vmctl destroy   removes whatever vmctl made

vmctl {
  project = "demo" # names of what vmctl makes begin with it
  # `vmctl init` adds an id here, once.
}

# The instances are in a Lima home of vmctl's own. With
#   home = "~/.lima"
# they are where limactl looks for them, beside those that it made.
provider "lima" "here" {}

# It outlives the VM. The guest formats it once, while it is blank, and mounts it at
# /mnt/lima-demo.cache.
disk "cache" {
  provider = provider.lima.here
  size     = "10GiB" # grows in place, and never shrinks
  fs_type  = "ext4"
}

vm "dev" {
  provider = provider.lima.here
  cpus     = 2
  memory   = "2GiB"

  # Lima downloads it once. For another machine than x86_64, take its image.
  image {
    source = "https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-genericcloud-amd64.qcow2"
  }

  root_disk {
    size = "20GiB" # grows in place
  }

  additional_disk {
    disk = disk.cache
  }

  # This folder is /work in the guest.
  mount {
    source   = "."
    target   = "/work"
    writable = true
  }

  # `vmctl output` prints which port of this host was taken.
  port_forward {
    guest = 8080
  }

  # A request to shut down comes first, and force when that was ignored for so long.
  stop {
    grace = "1m"
  }
}

output "web" {
  value = "http://127.0.0.1:${vm.dev.ports["8080"]}"
}
