//go:build cgo && libvirt_dlopen && linux

// Package provider_test runs providers against real systems.
package provider_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vmctl/internal/real"
)

// The environment of these tests. The guest is a folder with vmlinuz and
// initrd.gz, which guest/ of this repository builds.
const (
	guestVar = "VMCTL_TEST_GUEST"
	homeVar  = "VMCTL_TEST_HOME" // set by the parent: this process is the ordinary user
)

func TestMain(m *testing.M) {
	flag.Parse()
	status := 0
	left, err := real.Skipped(os.Stdout, os.Getenv)
	if err == nil && !left {
		status, err = run(m)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "provider: %v\n", err)
		status = 1
	}
	os.Exit(status)
}

// run runs the tests as an ordinary user with a home of their own, so that
// libvirt starts a daemon for just this run.
func run(m *testing.M) (int, error) {
	if os.Getenv(homeVar) != "" {
		return m.Run(), nil
	}
	home, err := os.MkdirTemp("/tmp", "vp")
	if err != nil {
		return 0, err
	}
	status, err := runIn(home)
	return status, errors.Join(err, endAll(home), os.RemoveAll(home))
}

func runIn(home string) (int, error) {
	guest := os.Getenv(guestVar)
	if guest == "" {
		return 0, fmt.Errorf("%s is not set: build the tiny guest and name its folder there, or set %s=1 to go without real systems", guestVar, real.SkipVariable)
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	for name, from := range map[string]string{
		"provider.test": self, "guest/vmlinuz": filepath.Join(guest, "vmlinuz"), "guest/initrd.gz": filepath.Join(guest, "initrd.gz"),
	} {
		if err := copyFile(filepath.Join(home, name), from); err != nil {
			return 0, err
		}
	}
	for _, dir := range []string{"run", "tmp"} {
		if err := os.Mkdir(filepath.Join(home, dir), 0o700); err != nil {
			return 0, err
		}
	}
	cmd := exec.Command(filepath.Join(home, "provider.test"), passedOn(os.Args[1:])...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = home, os.Stdout, os.Stderr
	cmd.Env = append(userEnv(home), homeVar+"="+home)
	if os.Getuid() == 0 {
		credential, err := ordinaryUser(home)
		if err != nil {
			return 0, err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	}
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// passedOn leaves out what go test wants written to folders of its own: the
// ordinary user cannot reach them.
func passedOn(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return strings.HasPrefix(arg, "-test.testlogfile=") || strings.HasPrefix(arg, "-test.gocoverdir=") || strings.HasPrefix(arg, "-test.coverprofile=")
	})
}

func userEnv(home string) []string {
	return []string{
		"HOME=" + home, "XDG_RUNTIME_DIR=" + filepath.Join(home, "run"), "TMPDIR=" + filepath.Join(home, "tmp"),
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
	}
}

// ordinaryUser gives the home to a user that every system has.
func ordinaryUser(home string) (*syscall.Credential, error) {
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(home, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(uid), int(gid)))
	})
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

func copyFile(to, from string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// endAll ends what was started for the home and is still there: libvirt's
// daemons, and QEMUs of tests that failed. It returns when they are gone.
func endAll(home string) error {
	var errs []error
	for _, pid := range livingIn(home) {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, err)
		}
	}
	for deadline := time.Now().Add(10 * time.Minute); len(livingIn(home)) > 0; {
		if time.Now().After(deadline) {
			return errors.Join(append(errs, fmt.Errorf("processes %v of %s do not end", livingIn(home), home))...)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.Join(errs...)
}

// livingIn lists the processes whose home it is, by their environment.
func livingIn(home string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && strings.Contains("\x00"+string(env), "\x00HOME="+home+"\x00") {
			all = append(all, pid)
		}
	}
	return all
}
