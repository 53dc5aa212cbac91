package cli_test

import (
	"testing"
)

const twoVMs = `
vm "a" {
  boot { kernel = "vmlinuz" }
}
vm "b" {
  running = false
  boot { kernel = "vmlinuz" }
}
`

// A resource out of scope keeps its address, and a plan without steps writes nothing.
func TestMovesStayInScope(t *testing.T) {
	h := newHouse(t, withID+twoVMs)
	h.run("apply", "--auto-approve").exits(0)
	h.replace(`vm "a"`, `vm "first"`)
	h.replace(`vm "b"`, `vm "second"`)
	h.write("moved.vmctl.hcl", "moved {\n  from = vm.a\n  to   = vm.first\n}\nmoved {\n  from = vm.b\n  to   = vm.second\n}\n")
	h.run("apply", "--target=vm.first", "--auto-approve").exits(0).silent("second")
	h.run("state", "list").exits(0).says("vm.first", "vm.b").silent("second")
	h.run("vm", "stop", "second").exits(0).says("vm.second is stopped already.")
	h.run("state", "list").exits(0).says("vm.first", "vm.b").silent("second")
	h.run("apply", "--target=vm.first", "--auto-approve").exits(0).says("No changes.")
	h.run("state", "list").exits(0).says("vm.first", "vm.b").silent("second")
	h.run("apply", "--auto-approve").exits(0)
	h.run("state", "list").exits(0).says("vm.first", "vm.second").silent("vm.b")
}

// A plan without steps asks nobody, and writes nothing.
func TestMovesNeedAStep(t *testing.T) {
	h := newHouse(t, withID+twoVMs)
	h.run("apply", "--auto-approve").exits(0)
	clear(h.memory.machines)
	h.replace(`vm "a"`, `vm "first"`)
	h.write("moved.vmctl.hcl", "moved {\n  from = vm.a\n  to   = vm.first\n}\n")
	h.run("vm", "restart", "first").exits(0).says("vm.first: it does not exist: there is nothing to restart.")
	h.run("state", "list").exits(0).says("vm.a", "vm.b").silent("first")
	h.run("apply", "--auto-approve").exits(0)
	h.run("state", "list").exits(0).says("vm.first", "vm.b").silent("vm.a ")
}
