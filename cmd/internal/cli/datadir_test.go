package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDataDirectory(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	info, err := os.Stat(h.data())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the data directory has mode %o, want 700", info.Mode().Perm())
	}
	long := "/" + strings.Repeat("x", 90)
	for _, set := range []func(){
		func() { h.environ = []string{"XDG_STATE_HOME=" + long} },
		func() { h.environ = []string{"VMCTL_DATA_DIR=" + long} },
		func() { h.environ = []string{"HOME=" + long} },
	} {
		set()
		h.run("plan").exits(3).warns("its name is too long for the sockets inside", "and the system allows 107", "--data-dir=DIR")
	}
	h.environ = nil
	h.run("plan", "--data-dir="+long).exits(3)
	h.environ = []string{"HOME=", "XDG_STATE_HOME=relative"}
	h.run("plan").exits(3).warns("neither HOME nor XDG_STATE_HOME names a folder")
	h.environ = []string{"VMCTL_DATA_DIR=" + filepath.Join(h.home, "d")}
	h.run("plan", "--detailed-exitcode").exits(2).says("1 to adopt")
	h.run("plan", "--data-dir="+h.data(), "--detailed-exitcode").exits(0)
}

// With sudo, vmctl warns if the user has a data directory of their own.
func TestSudoHasAnotherDataDirectory(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	root := filepath.Join(h.home, "root")
	h.environ = []string{"HOME=" + root, "SUDO_USER=me"}
	says := "me has a data directory of this project, " + h.data() + ", and with sudo vmctl uses " + root
	h.memory = newMemory() // another libvirt
	h.run("plan").exits(0).says("1 to create", says, "--data-dir="+h.data())
	h.run("plan", "--json").exits(0).says(says)
	if got := h.run("plan", "--data-dir="+h.data()); strings.Contains(got.stdout, says) {
		t.Errorf("it is said of the directory itself:\n%s", got.stdout)
	}
	h.environ = []string{"HOME=" + root, "SUDO_USER=somebody"}
	if got := h.run("plan"); strings.Contains(got.stdout, "with sudo") {
		t.Errorf("it is said of a user who has none:\n%s", got.stdout)
	}
}

func TestEnvIsASecondInstance(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	h.run("apply", "--auto-approve", "--env=test").exits(0).says("1 to create")
	if h.memory.machine("demo.dev") == nil || len(h.memory.machines) != 2 {
		t.Errorf("the host has %d machines, want two", len(h.memory.machines))
	}
	h.run("plan", "--env=test", "--detailed-exitcode").exits(0)
	h.run("plan", "--env=test", "--data-dir="+h.data()).exits(5).warns("belongs to project")
}

// row L60: paths with spaces and quotes work everywhere
func TestPathsWithSpaces(t *testing.T) {
	h := newHouse(t, "")
	dir := filepath.Join(h.dir, `it's "a" $dir`)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"main.vmctl.hcl": small, "vmlinuz": "kernel"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.run("-C", dir, "init").exits(0)
	h.run("-C", dir, "fmt").exits(0)
	h.run("-C", dir, "validate").exits(0)
	h.run("-C", dir, "plan", "--data-dir", filepath.Join(h.home, "a b")).exits(0).says("Next: vmctl apply -C '", `it'\''s "a" $dir' '--data-dir=`)
	h.run("-C", dir, "apply", "--auto-approve").exits(0)
	h.run("-C", dir, "status").exits(0)
	h.run("-C", dir, "destroy", "--auto-approve").exits(0)
}
