//go:build unix

package lima_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// programs makes the folder of the programs that tests build. TestMain removes it.
var programs = sync.OnceValues(func() (dir string, err error) { return os.MkdirTemp("", "v") })

func TestMain(m *testing.M) {
	if _, err := standIn(); err != nil { // now: tests change the PATH
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if dir, err := programs(); err == nil {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// standIn builds the program in testdata/standin once, and returns its path: it plays vmctl-lima, QEMU and wsl.exe. As QEMU
// it has another name, qemu-stand-in in the same folder.
var standIn = sync.OnceValues(func() (path string, err error) {
	path, err = built("libexec/vmctl-lima", "./testdata/standin")
	if err == nil {
		err = os.Link(path, qemuBeside(path))
	}
	return path, err
})

// qemuBeside returns the path of the stand-in for QEMU.
func qemuBeside(standIn string) string { return filepath.Join(filepath.Dir(standIn), "qemu-stand-in") }

// built builds a program into the folder of programs.
func built(name, from string) (path string, err error) {
	dir, err := programs()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, name)
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, from).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", from, err, out)
	}
	return path, nil
}
