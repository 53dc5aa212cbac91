//go:build linux

// Package network_test runs the real vmctl against libvirt's networks, with real guests. The daemon is one of its own, in namespaces of
// its own: no bridge, address or rule of the firewall of the host changes, and nothing is left when the test ends.
//
// VMCTL_TEST_GUEST names a folder with the tiny guest. VMCTL_SKIP_REAL=1, or -short, leaves these tests out.
package network_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"vmctl/internal/real"
)

// The environment of the tests in the namespaces.
const (
	guestVar  = "VMCTL_TEST_GUEST"
	binaryVar = "VMCTL_TEST_BINARY" // set by the parent: this process is in the namespaces, and vmctl is there
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := 0
	left, err := real.Skipped(os.Stdout, os.Getenv)
	switch {
	case err != nil || left:
	case os.Getenv(binaryVar) == "":
		code, err = apart()
	default:
		if err = prepare(); err == nil {
			code = m.Run()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "network:", err)
		code = 1
	}
	os.Exit(code)
}

// apart runs the tests in namespaces of their own. All processes there end with the tests: libvirt's daemon, DHCP servers, QEMUs.
func apart() (code int, err error) {
	if os.Getuid() != 0 {
		return 0, errors.New("only root makes namespaces and bridges: run these tests as root, or leave them out with VMCTL_SKIP_REAL=1")
	}
	if os.Getenv(guestVar) == "" {
		return 0, fmt.Errorf("%s is not set: build the tiny guest with guest/tiny.sh DIR and set %s=DIR", guestVar, guestVar)
	}
	for _, program := range []string{"libvirtd", "virsh", "dnsmasq", "iptables"} {
		if _, err := exec.LookPath(program); err != nil {
			return 0, fmt.Errorf("%w: scripts/deps.sh run test installs it", err)
		}
	}
	dir, err := os.MkdirTemp("", "vmctl-network-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary := filepath.Join(dir, "vmctl")
	if out, err := exec.Command("go", "build", "-tags", "libvirt_dlopen", "-o", binary, "vmctl/cmd/vmctl").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build vmctl: %w\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command("unshare", append([]string{"--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", self}, os.Args[1:]...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), binaryVar+"="+binary, "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin", "HOME="+dir,
		"XDG_STATE_HOME="+filepath.Join(dir, "s"), "XDG_CACHE_HOME="+filepath.Join(dir, "c"),
		"XDG_CONFIG_HOME="+filepath.Join(dir, "k"), "LIBVIRT_DEFAULT_URI=qemu:///system", "TERM=dumb", "LC_ALL=C")
	var exit *exec.ExitError
	if err = cmd.Run(); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// qemuConf lets QEMU run as root and without what this machine may lack.
const qemuConf = `user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
stdio_handler = "file"
namespaces = []
cgroup_controllers = []
`

// prepare gives the namespaces their own folders of libvirt and its daemon.
func prepare() error {
	for _, dir := range []string{"/run", "/var/lib/libvirt", "/var/cache/libvirt", "/var/log/libvirt", "/etc/libvirt"} {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	// The bridges that the kernel shows under /sys are those of the namespace of whoever mounted it.
	// It takes the control groups along, which libvirt does without then.
	if err := syscall.Unmount("/sys", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount /sys: %w", err)
	}
	if err := syscall.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount /sys: %w", err)
	}
	if err := os.WriteFile("/etc/libvirt/qemu.conf", []byte(qemuConf), 0o600); err != nil {
		return err
	}
	for _, argv := range [][]string{{"ip", "link", "set", "lo", "up"}, {"libvirtd", "-d", "-p", "/run/libvirtd.pid"}} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
		}
	}
	return nil
}
