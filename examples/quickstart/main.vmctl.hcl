# One small virtual machine. `make quickstart` copies this folder, builds the
# guest that boots here into guest/, and applies it.
#
#   vmctl plan      what would change, and why; changes nothing
#   vmctl apply     changes it, after asking
#   vmctl destroy   removes whatever vmctl made
#
# Change a line, memory for example, and plan again.

vmctl {
  project = "quickstart" # names of what vmctl makes begin with it
  # `vmctl init` adds an id here, once. It belongs to these files: vmctl knows
  # by it what it made.
}

# Its address is vm.dev. Commands take that, or just dev:
# `vmctl vm shell dev` logs in.
vm "dev" {
  cpus   = 1
  memory = "256MiB" # sizes have binary units: KiB, MiB, GiB, TiB

  # A kernel and an initial RAM disk, relative to this folder. There is no disk:
  # a restart forgets what was written inside.
  boot {
    kernel  = "guest/vmlinuz"
    initrd  = "guest/initrd.gz"
    cmdline = "console=ttyS0 quiet no_timer_check" # a busy machine without KVM may be late with the first ticks
  }

  # apply waits until SSH answers. The keys, of the user and of the guest, are
  # made by vmctl.
  ssh {
    user = "root"
  }

  # How vmctl stops it: a request, and force when that was ignored for so long.
  stop {
    grace = "10s"
  }
}

# What `vmctl output` prints. The port is known once the machine runs.
output "ssh" {
  value = "${vm.dev.address}:${vm.dev.ssh_port}"
}
