# Three jobs on three branches of one repository, each in a worktree of its own on this host. Put this file into a git
# repository.
#
#   vmctl apply                               makes the branches and the worktrees, runs the jobs side by side, and ends with them
#   vmctl job status 'job.part["a"]'          shows how its newest job ended; job logs shows what it said
#   git merge part/a part/b part/c            the branches are in this repository: no fetch is needed
#   vmctl apply --var task=2                  runs them again: their triggers have changed
#
# An agent in place of the command: agent = "claude" (or "codex", "gemini"), and the task as its prompt.

vmctl {
  project = "jobs"
}

variable "task" {
  type    = string
  default = "1"
}

variable "dir" {
  type    = string
  default = "/var/tmp/vmctl-jobs" # the folder of the worktrees
}

locals {
  parts = toset(["a", "b", "c"])
}

workspace "part" {
  for_each = local.parts

  repo   = "." # the repository that this file is in
  branch = "part/${each.key}"
  path   = "${var.dir}/${each.key}"

  create_branch = true
}

job "part" {
  for_each = local.parts

  workspace = workspace.part[each.key]
  command   = ["sh", "-c", "cat >>\"$0.txt\" && git add . && git commit -q -m \"part $0\"", each.key]
  prompt    = "Task ${var.task} of part ${each.key}.\n"

  run      = "once" # by apply, once for each set of triggers, command and prompt; manual: by vmctl job run alone
  triggers = { task = var.task }
  timeout  = "30m"
}
