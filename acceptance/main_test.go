//go:build linux

// Package acceptance runs the real vmctl against real systems, as an ordinary
// user of its own. The scripts in testdata/script are its tests.
//
// VMCTL_TEST_GUEST names a folder with the tiny guest, VMCTL_TEST_IMAGE one with
// the Debian guest (guest/tiny.sh and guest/debian.sh build them; `make test` does).
// VMCTL_SKIP_REAL=1, or -short, leaves these tests out.
package acceptance_test

import (
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"vmctl/internal/real"
)

// lab holds the files and the user that the tests of this package share.
type lab struct {
	vmctl   string // the binary
	boxed   string // another one, which knows boxes, a kind that only tests have
	limactl string // Lima's own program, of the version that vmctl-lima has
	guest   string // folder of the tiny guest
	image   string // file of the Debian guest
	cache   string // folder with libvirt's findings about QEMU, which homes share
	user    *user.User
}

// shared is the lab that TestMain sets up.
var shared lab

func TestMain(m *testing.M) {
	flag.Parse()
	code := 0
	left, err := real.Skipped(os.Stdout, os.Getenv)
	if err == nil && !left {
		code, err = run(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "acceptance:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "vmctl-acc-")
	if err != nil {
		return 0, err
	}
	defer removeAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the test's user has to reach into it
		return 0, err
	}
	if shared.guest, err = guest(dir); err != nil {
		return 0, err
	}
	if shared.image, err = debian(dir); err != nil {
		return 0, err
	}
	if shared.vmctl, err = build(dir); err != nil {
		return 0, err
	}
	if shared.boxed, err = buildBoxed(dir); err != nil {
		return 0, err
	}
	if shared.limactl, err = buildLima(dir); err != nil {
		return 0, err
	}
	end, err := makeUser(dir)
	if err != nil {
		return 0, err
	}
	defer end()
	shared.cache = filepath.Join(dir, "cache")
	if err := os.Mkdir(shared.cache, 0o700); err != nil {
		return 0, err
	}
	if err := ownTree(shared.cache); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// guest copies the tiny guest to where the test's user can read it.
func guest(dir string) (string, error) {
	from := os.Getenv("VMCTL_TEST_GUEST")
	if from == "" {
		return "", fmt.Errorf("VMCTL_TEST_GUEST is not set: run `make test`, or build the guest with guest/tiny.sh DIR and set VMCTL_TEST_GUEST=DIR")
	}
	to := filepath.Join(dir, "guest")
	if err := os.Mkdir(to, 0o755); err != nil { //nolint:gosec // see run
		return "", err
	}
	for _, name := range []string{"vmlinuz", "initrd.gz"} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return "", fmt.Errorf("read the tiny guest: %w", err)
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o644); err != nil { //nolint:gosec // see run
			return "", err
		}
	}
	// An image to begin from that boots nothing.
	if out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", filepath.Join(to, "empty.qcow2"), "1M").CombinedOutput(); err != nil {
		return "", fmt.Errorf("make an empty image: %w: %s", err, out)
	}
	return to, nil
}

// debian copies the Debian guest to where the test's user can read it.
func debian(dir string) (string, error) {
	from := os.Getenv("VMCTL_TEST_IMAGE")
	if from == "" {
		return "", fmt.Errorf("VMCTL_TEST_IMAGE is not set: run `make test`, or build the guest with guest/debian.sh DIR and set VMCTL_TEST_IMAGE=DIR")
	}
	to := filepath.Join(dir, "debian.qcow2")
	out, err := exec.Command("cp", "--reflink=auto", filepath.Join(from, "debian.qcow2"), to).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("copy the Debian guest: %w: %s", err, out)
	}
	return to, os.Chmod(to, 0o644) //nolint:gosec // see run
}

func build(dir string) (string, error) {
	bin := filepath.Join(dir, "bin", "vmctl")
	cmd := exec.Command("go", "build", "-tags", "libvirt_dlopen", "-o", bin, "vmctl/cmd/vmctl")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build vmctl: %w\n%s", err, out)
	}
	return bin, nil
}

// buildBoxed builds the vmctl of the scripts in cmd/vmctl, which knows boxes. The tests there are vmctl
// when their program has this name.
func buildBoxed(dir string) (string, error) {
	bin := filepath.Join(dir, "boxed", "vmctl")
	cmd := exec.Command("go", "test", "-c", "-tags", "libvirt_dlopen", "-o", bin, "vmctl/cmd/vmctl")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the vmctl that knows boxes: %w\n%s", err, out)
	}
	return bin, nil
}

// guestArch returns Lima's name of this machine's architecture, which that of the guests is, too.
func guestArch() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}

// buildLima builds vmctl-lima where vmctl looks for it, and limactl beside it.
func buildLima(dir string) (limactl string, err error) {
	const tool, lima = "../cmd/vmctl-lima", "github.com/lima-vm/lima/v2"
	version, err := exec.Command("go", "list", "-C", tool, "-m", "-f", "{{.Version}}", lima).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("read the version of Lima: %w\n%s", err, version)
	}
	libexec := filepath.Join(dir, "libexec")
	if err := os.Mkdir(libexec, 0o755); err != nil { //nolint:gosec // see run
		return "", err
	}
	cmd := exec.Command("go", "build", "-C", tool, "-buildvcs=false", "-trimpath",
		"-ldflags", "-s -w -X "+lima+"/pkg/version.Version="+strings.TrimSpace(string(version)),
		"-o", libexec+"/", ".", lima+"/cmd/limactl")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as the Makefile builds it
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build vmctl-lima and limactl: %w\n%s", err, out)
	}
	agent := exec.Command("go", "build", "-C", tool, "-buildvcs=false", "-trimpath", "-o", filepath.Join(dir, "share", "lima", "lima-guestagent.Linux-"+guestArch()), lima+"/cmd/lima-guestagent")
	agent.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := agent.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the guest agent of Lima: %w\n%s", err, out)
	}
	if out, err := exec.Command("../scripts/lima-templates.sh", filepath.Join(dir, "share", "lima", "templates")).CombinedOutput(); err != nil {
		return "", fmt.Errorf("copy Lima's templates: %w\n%s", err, out)
	}
	return filepath.Join(libexec, "limactl"), nil
}

// makeUser gives the tests a user of their own: root makes one and removes it
// again, an ordinary user is one already.
func makeUser(dir string) (end func(), err error) {
	if os.Getuid() != 0 {
		shared.user, err = user.Current()
		return func() {}, err
	}
	name := "vmctl-test-" + strings.ToLower(rand.Text()[:10])
	home := filepath.Join(dir, "home")
	if out, err := exec.Command("useradd", "--create-home", "--home-dir", home, "--shell", "/bin/bash", name).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make the user %s: %w: %s", name, err, out)
	}
	end = func() {
		endProcessesOf(shared.user)
		if out, err := exec.Command("userdel", name).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "acceptance: remove the user %s: %v: %s\n", name, err, out)
		}
	}
	shared.user, err = user.Lookup(name)
	if err != nil {
		shared.user = &user.User{}
	}
	return end, err
}

// endProcessesOf ends what is left of the processes of a user that a test made.
func endProcessesOf(u *user.User) {
	for _, pid := range processesOf(u.Uid) {
		if p, err := os.FindProcess(pid); err == nil {
			p.Kill() //nolint:errcheck // it may have ended by itself
		}
	}
}

// processesOf lists the processes of a user.
func processesOf(uid string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil || uid == "" || uid == "0" {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		status, err := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
		if err == nil && strings.Contains(string(status), "\nUid:\t"+uid+"\t") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func removeAll(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "acceptance:", err)
	}
}
