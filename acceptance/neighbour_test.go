//go:build linux

package acceptance_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// neighbour lets two users' libvirts stand for two hosts: this script's and that of
// another user, or, where the test is no root, of the same one with another home.
// Both have a pool vms. $HERE and $NEIGHBOUR are the sockets of the two.
func neighbour(ts *testscript.TestScript, _ bool, _ []string) {
	other := shared.user
	if os.Getuid() == 0 {
		nobody, err := user.Lookup("nobody")
		ts.Check(err)
		other = nobody
	}
	home, err := os.MkdirTemp("", "vn")
	ts.Check(err)
	ts.Defer(func() {
		for _, pid := range processesAt(other, home) {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended by itself
		}
		removeAll(home)
	})
	for _, dir := range []string{"c", "k", "r"} {
		ts.Check(os.Mkdir(filepath.Join(home, dir), 0o700))
	}
	ts.Check(chownTree(home, other))
	there := []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home + "/c", "XDG_CACHE_HOME=" + home + "/k", "XDG_RUNTIME_DIR=" + home + "/r",
		"PATH=" + os.Getenv("PATH"),
	}
	virsh, err := exec.LookPath("virsh")
	ts.Check(err)
	pool := func(folder string) []string {
		return []string{"-c", "qemu:///session", "pool-create-as", "vms", "dir", "--target", folder}
	}
	cmd := exec.Command(virsh, pool(home+"/c")...)
	cmd.Env = there
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credentialOf(ts, other)}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		ts.Fatalf("make the neighbour's pool: %v: %s", err, out)
	}
	if _, stderr, code := quietly(ts, append([]string{"virsh"}, pool(ts.Getenv("HOME")+"/c")...)); code != 0 {
		ts.Fatalf("make the pool: %s", stderr)
	}
	socket := filepath.Join(home, "r/libvirt/libvirt-sock")
	for _, path := range []string{home, filepath.Join(home, "r"), filepath.Join(home, "r/libvirt"), socket} {
		ts.Check(os.Chmod(path, 0o777)) //nolint:gosec // the test's user reaches it as a host is reached
	}
	ts.Setenv("HERE", filepath.Join(ts.Getenv("XDG_RUNTIME_DIR"), "libvirt/libvirt-sock"))
	ts.Setenv("NEIGHBOUR", socket)
}

func credentialOf(ts *testscript.TestScript, u *user.User) *syscall.Credential {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	ts.Check(err)
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	ts.Check(err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// chownTree gives a tree to a user.
func chownTree(dir string, u *user.User) error {
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}

// processesAt lists the processes of a user whose home it is.
func processesAt(u *user.User, home string) []int {
	var pids []int
	for _, pid := range processesOf(u.Uid) {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(environment, []byte("HOME="+home+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}
