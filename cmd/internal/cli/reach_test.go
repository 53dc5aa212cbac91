package cli_test

import (
	"os"
	"path/filepath"
	"testing"
)

// row L53: a VM that does not run is not entered, and stays as it is
func TestInsideAStoppedVM(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("vm", "exec", "dev", "--", "true").exits(255).warns("vm.dev is not running: it does not exist", "vmctl apply")
	h.run("apply", "--auto-approve").exits(0)
	h.run("vm", "stop", "dev").exits(0)
	h.memory.acted = nil
	h.run("vm", "exec", "dev", "--", "true").exits(255).warns("vm.dev is not running: it is stopped", "vmctl vm start vm.dev")
	h.stdinFile()
	h.run("vm", "shell", "dev").exits(255).warns("vm.dev is not running")
	h.run("vm", "ssh-config", "dev").exits(1).warns("vm.dev is not running")
	h.acted()
	h.run("status").exits(0).says("vm.dev    stopped")
}

// stdinFile gives commands a file to read from.
func (h *house) stdinFile() {
	h.t.Helper()
	file, err := os.Open(os.DevNull)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := file.Close(); err != nil {
			h.t.Error(err)
		}
	})
	h.stdin = file
}

func TestSSHConfig(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	h.run("vm", "ssh-config", "dev").exits(0).says("Host vm.dev\n", "HostName 127.0.0.1", "User root", "StrictHostKeyChecking yes",
		`IdentityFile "`+filepath.Join(h.data(), "keys", "demo.dev", "id_ed25519")+`"`)
}
