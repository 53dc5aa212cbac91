package cli_test

import (
	"testing"
)

func TestVMCommands(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("vm", "restart", "dev", "--auto-approve").exits(0).says("vm.dev: it does not exist: there is nothing to restart.")
	h.run("vm", "stop", "dev").exits(0).says("vm.dev: it does not exist: there is nothing to stop.")
	h.acted()
	h.run("vm", "start", "dev").exits(3).says("1 to create").warns("standard input is no terminal", "vmctl vm start --auto-approve dev")
	h.run("apply", "--auto-approve").exits(0)
	h.acted("define vm.dev", "start vm.dev", "wait_ssh vm.dev")
	h.run("vm", "stop", "dev").exits(0).says("Stop vm.dev: 1 to stop.", "vm.dev: stopped", "(graceful)").warns("the next apply starts it again")
	h.acted("stop vm.dev")
	h.run("vm", "stop", "vm.dev").exits(0).says("vm.dev is stopped already.").warns("the next apply starts it again")
	h.run("plan", "--detailed-exitcode").exits(2).says("1 to start")
	h.run("vm", "start", "dev").exits(0).silent("the next apply")
	h.acted("start vm.dev", "wait_ssh vm.dev")
	h.run("vm", "restart", "dev").exits(0)
	h.acted("stop vm.dev", "start vm.dev", "wait_ssh vm.dev")
	h.run("vm", "stop", "nothing").exits(3).warns(`"nothing" is not a resource of the spec.`)

	// The edit waits for an apply.
	h.replace("256MiB", "512MiB")
	h.run("vm", "restart", "dev").exits(0).silent("512MiB")
	h.acted("stop vm.dev", "start vm.dev", "wait_ssh vm.dev")
	h.run("plan", "--detailed-exitcode").exits(2).says("512MiB")

	h.replace("cpus   = 1", "running = false")
	h.run("vm", "start", "dev", "--auto-approve").exits(0).warns("the next apply stops it again")
}

// row A36: a stop that does not end is never called one
func TestStopThatFails(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	h.memory.hold["stop vm.dev"] = make(chan struct{})
	h.run("vm", "stop", "dev", "--timeout=1s").exits(4).warns("stop: no answer in time", "1 failed").silent("stopped in")
	h.run("status").exits(0).says("vm.dev    running")
}
