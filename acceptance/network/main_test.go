//go:build linux

// Package network_test runs the real vmctl against libvirt's networks, with real guests. The daemon is one of its own, in namespaces of
// its own: no bridge, address or rule of the firewall of the host changes, and nothing is left when the test ends, however it ends.
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
	"runtime"
	"strings"
	"syscall"
	"testing"

	"vmctl/internal/real"
)

// The environment of the tests in the namespaces.
const (
	guestVar  = "VMCTL_TEST_GUEST"
	binaryVar = "VMCTL_TEST_BINARY" // set by the parent: this process is in the namespaces, and vmctl was built there
)

// home holds all that the tests write. It is in memory, and ends with the namespaces.
const home = "/run/vmctl"

// program is vmctl in the namespaces.
const program = home + "/vmctl"

func TestMain(m *testing.M) {
	flag.Parse()
	code := 0
	left, err := real.Skipped(os.Stdout, os.Getenv)
	switch {
	case err != nil || left:
	case os.Getenv(binaryVar) == "":
		code, err = apart()
	case os.Getpid() == 1:
		code, err = reap()
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

// apart runs the tests in namespaces of their own. All processes there end with the tests, or with this process if somebody kills it:
// libvirt's daemon, DHCP servers, QEMUs.
func apart() (code int, err error) {
	if os.Getuid() != 0 {
		return 0, errors.New("only root makes namespaces and bridges: run these tests as root, or leave them out with VMCTL_SKIP_REAL=1")
	}
	if os.Getenv(guestVar) == "" {
		return 0, fmt.Errorf("%s is not set: build the tiny guest with guest/tiny.sh DIR and set %s=DIR", guestVar, guestVar)
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
	runtime.LockOSThread() // the thread's end would count as that of the parent
	cmd := exec.Command("unshare", append([]string{"--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", self}, os.Args[1:]...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env = append(os.Environ(), binaryVar+"="+binary, "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin", "HOME="+home, "TMPDIR="+home, "XDG_RUNTIME_DIR="+home, "XDG_STATE_HOME="+home+"/s",
		"XDG_CACHE_HOME="+home+"/c", "XDG_CONFIG_HOME="+home+"/k", "LIBVIRT_DEFAULT_URI=qemu:///system", "TERM=dumb", "LC_ALL=C")
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
	for _, name := range []string{"libvirtd", "virsh", "dnsmasq", "iptables", "ip"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%w: scripts/deps.sh run test installs it", err)
		}
	}
	for _, dir := range []string{"/run", "/var/lib/libvirt", "/var/cache/libvirt", "/var/log/libvirt", "/etc/libvirt"} {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	if err := keepBinary(); err != nil {
		return err
	}
	// The bridges that the kernel shows under /sys are those of the namespace of whoever mounted it.
	// It takes the control groups along, which libvirt does without then.
	if err := syscall.Unmount("/sys", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount /sys: %w", err)
	}
	if err := syscall.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount /sys: %w", err)
	}
	if err := withoutFirewall(); err != nil {
		return err
	}
	if err := os.WriteFile("/etc/libvirt/qemu.conf", []byte(qemuConf), 0o600); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"libvirtd", "-d", "-p", "/run/libvirtd.pid"},
		// The daemon looks at QEMU once, which takes long on a slow machine. virsh has the time that vmctl would not give it.
		{"virsh", "domcapabilities", "--virttype", "qemu"},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
		}
	}
	return nil
}

// keepBinary takes vmctl into the namespaces and removes the folder that it was built in, which nobody could do after a kill.
func keepBinary() error {
	built := os.Getenv(binaryVar)
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		return err
	}
	if err := syscall.Mount(built, program, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", program, err)
	}
	return os.RemoveAll(filepath.Dir(built))
}

// withoutFirewall puts a program that does nothing in the place of iptables where the kernel has no such tables: libvirt wants to write
// rules for each network. A namespace with nothing but its guests needs none.
func withoutFirewall() error {
	for _, table := range []string{"filter", "nat", "mangle"} {
		out, err := exec.Command("iptables", "-w", "-t", table, "-S").CombinedOutput()
		if err == nil {
			continue
		}
		fmt.Printf("libvirt writes no rules of a firewall: iptables -t %s: %v: %s", table, err, out)
		for _, name := range []string{"iptables", "ip6tables"} {
			path, err := exec.LookPath(name)
			if err != nil {
				return err
			}
			if err := syscall.Mount("/bin/true", path, "", syscall.MS_BIND, ""); err != nil {
				return fmt.Errorf("mount %s: %w", path, err)
			}
		}
		return nil
	}
	return nil
}

// reap runs the tests as a child. This process is the first of the namespaces, and so the parent of each process whose own parent has
// ended: libvirt waits until a QEMU is gone, and a dead process stays until its parent has asked for it.
func reap() (code int, err error) {
	tests := exec.Command("/proc/self/exe", os.Args[1:]...)
	tests.Stdout, tests.Stderr = os.Stdout, os.Stderr
	if err := tests.Start(); err != nil {
		return 0, err
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for the tests: %w", err)
		case pid == tests.Process.Pid && status.Signaled():
			return 0, fmt.Errorf("the tests ended by a signal: %s", status.Signal())
		case pid == tests.Process.Pid:
			return status.ExitStatus(), nil
		}
	}
}
