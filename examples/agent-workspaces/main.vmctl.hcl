# One virtual machine in which three agents work, each on a branch of its own. Put this file into a git repository, with
# the guest of examples/quickstart in guest/.
#
#   vmctl apply                                   makes the VM, the branches and the workspaces
#   vmctl workspace exec auth -- sh -c '...'      runs a command, such as an agent, in one of them
#   vmctl job run --in auth --prompt task.md -- claude -p
#                                                 runs one in the background; vmctl job logs -f ID follows it
#   vmctl workspace status auth                   shows the work that exists only there
#   vmctl workspace fetch auth                    brings its commits to the branch of this repository
#   vmctl workspace conflicts                     shows which branches collide, before anybody merges them
#   vmctl destroy                                 refuses as long as there is such work

vmctl {
  project = "agents"
}

vm "dev" {
  cpus   = 1
  memory = "256MiB"

  boot {
    kernel  = "guest/vmlinuz"
    initrd  = "guest/initrd.gz"
    cmdline = "console=ttyS0 quiet no_timer_check"
  }
}

workspace "auth" {
  vm     = vm.dev
  repo   = "." # the repository that this file is in
  branch = "feature/auth"
  path   = "/work/auth"

  create_branch = true # what is checked out here stays as it is

  env {
    pass = ["LANG"]
    set  = { PAGER = "cat" }
  }
}

workspace "topic" {
  for_each = toset(["docs", "search"])

  vm     = vm.dev
  repo   = "."
  branch = "topic/${each.key}"
  path   = "/work/${each.key}"

  create_branch = true
}

# Without a VM, a workspace is a worktree on this host:
#
#   workspace "here" {
#     branch = "review"
#     path   = "/home/ann/review"
#   }
