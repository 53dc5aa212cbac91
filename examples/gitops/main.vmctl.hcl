# The files in git are the wish: a pull request shows its plan as a comment, the merge applies exactly that plan, and a
# schedule looks for drift. The pipelines call the scripts in ci/, which you can call as well.

vmctl {
  project = "gitops"
  # `vmctl init` adds an id here, once.
}

vm "web" {
  cpus   = 1
  memory = "256MiB"

  boot {
    kernel  = "guest/vmlinuz"
    initrd  = "guest/initrd.gz"
    cmdline = "console=ttyS0 quiet no_timer_check"
  }

  lifecycle {
    prevent_destroy = true
  }
}
