//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// emulated lets Lima's QEMU run without KVM.
const emulated = "QEMU_SYSTEM_X86_64=qemu-system-x86_64 -machine q35,vmport=off -accel tcg,thread=multi"

// The real host agent, with the real QEMU and nothing to boot: it lives in a session of its own after the program that
// started it has ended. Once it is killed, QEMU runs on; another start is refused, and leaves the files of that QEMU.
//
// Trap 1: Lima v2.2.0 alone starts a second host agent then, as soon as somebody has looked at the instance and so has
// removed ha.pid: instance.StartWithPaths asks for no QEMU.
//
// Trap 2: it ties the host agent to the context of its start (exec.CommandContext).
func TestHostagentOfItsOwn(t *testing.T) {
	needs(t, "qemu-system-x86_64")
	needs(t, "ssh")
	h := newHome(t)
	h.env = []string{emulated}
	path, _ := image(t, "qcow2")
	dir := h.instance("a", document(path, "firmware: {legacyBIOS: true}", "vmOpts: {qemu: {cpuType: {x86_64: max}}}", "memory: 64MiB", "cpus: 1"))
	h.run("", "make", "a")
	agent := int(h.run("", "start", "a")["pid"].(float64))
	t.Cleanup(func() {
		for _, pid := range []int{agent, pidIn(filepath.Join(dir, "qemu.pid"))} {
			if pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
			}
		}
	})
	if got := pidIn(filepath.Join(dir, "ha.pid")); got != agent {
		t.Errorf("ha.pid has %d, and the host agent is %d", got, agent)
	}
	if session := strings.TrimSpace(tool(t, "ps", "-o", "sid=", "-p", strconv.Itoa(agent))); session != strconv.Itoa(agent) {
		t.Errorf("the session of the host agent %d is %s", agent, session)
	}
	qemu := 0
	for ; qemu == 0; qemu = pidIn(filepath.Join(dir, "qemu.pid")) {
		if err := syscall.Kill(agent, 0); err != nil {
			t.Fatalf("the host agent has ended: %v\n%s", err, lastLines(filepath.Join(dir, "ha.stderr.log")))
		}
		time.Sleep(time.Millisecond)
	}
	if err := syscall.Kill(agent, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ before, want string }{
		{"", "a hostagent runs, or its pid file was left"},
		{"ha.pid", "the VM runs without its hostagent: process " + strconv.Itoa(qemu)}, // an inspection by Lima removes it
	} {
		if test.before != "" {
			if err := os.Remove(filepath.Join(dir, test.before)); err != nil {
				t.Fatal(err)
			}
		}
		_, failed := h.try("", "start", "a")
		contains(t, failed, test.want)
		if got := pidIn(filepath.Join(dir, "qemu.pid")); got != qemu {
			t.Errorf("qemu.pid has %d, and QEMU is %d", got, qemu)
		}
		if out, err := exec.CommandContext(t.Context(), "ps", "-p", strconv.Itoa(qemu)).CombinedOutput(); err != nil {
			t.Errorf("QEMU does not run any more: %s", out)
		}
	}
}
