//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// A start beside a pid file, whosever it is, starts nothing and keeps the file.
func TestStartRefusesWithAPIDFile(t *testing.T) {
	for _, c := range []struct{ file, pid, want string }{
		{"ha.pid", "2147483646", "a hostagent runs, or its pid file was left"},
		{"ha.pid", "", "a hostagent runs, or its pid file was left"},
		{"qemu.pid", strconv.Itoa(os.Getpid()), "the VM runs without its hostagent"},
	} {
		h := newHome(t)
		path, _ := image(t, "qcow2")
		dir := h.instance("a", document(path))
		h.write(filepath.Join(dir, c.file), c.pid)
		_, failed := h.try("", "start", "a")
		contains(t, failed, c.want)
		if got, want := h.files(), "a/"+c.file+" a/lima.yaml"; got != want && got != "a/lima.yaml a/"+c.file {
			t.Errorf("files %q, want %q", got, want)
		}
	}
}

// A hostagent leaves the pid file of one that lives.
func TestHostagentKeepsAnothersPIDFile(t *testing.T) {
	h := newHome(t)
	pidFile := filepath.Join(h.dir, "ha.pid")
	h.write(pidFile, strconv.Itoa(os.Getpid()))
	cmd := h.command("", "hostagent", "--pidfile", pidFile, "--socket", filepath.Join(h.dir, "ha.sock"), "a")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("it ended without an error")
	}
	contains(t, string(out), "another hostagent may run: process "+strconv.Itoa(os.Getpid()))
	if got := h.files(); got != "ha.pid" {
		t.Errorf("files %q, want the pid file", got)
	}
}
