//go:build unix

package lima_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/lima"
)

// A host agent that starts ssh is one host agent, also before its child has its own arguments. Two that
// were started side by side are two.
func TestForksAreNoSecondHostAgent(t *testing.T) {
	found := func(pid, parent int) process.Found {
		return process.Found{Identity: process.Identity{PID: pid}, Parent: parent}
	}
	var got []int
	for _, f := range lima.WithoutForks([]process.Found{found(10, 1), found(11, 10), found(12, 1), found(13, 11)}) {
		got = append(got, f.PID)
	}
	if want := []int{10, 12}; !slices.Equal(got, want) {
		t.Errorf("host agents %v, want %v", got, want)
	}
}

// A process that merely has the arguments of one of an instance's is none: its program is no host agent and no QEMU. The
// healthy instance stays as it is, and the end of it does not reach the other process.
func TestArgumentsAreNoIdentity(t *testing.T) {
	l := newLab(t)
	var strangers []*exec.Cmd
	for option, file := range map[string]string{"--pidfile": "ha.pid", "-pidfile": "qemu.pid"} {
		stranger := exec.Command("sh", "-c", "read line", "sh", option, l.inDev(file))
		in, err := stranger.StdinPipe()
		if err == nil {
			err = stranger.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Close(); _ = stranger.Wait() }) //nolint:errcheck // it ends either way
		strangers = append(strangers, stranger)
	}
	if o := l.object(devID); o.State != providers.StateRunning || len(o.Findings) > 0 {
		t.Errorf("it is %s: %s", o.State, findings(o))
	}
	l.do(dev, providers.Stop)
	for _, stranger := range strangers {
		if _, err := (process.Host{}).Capture(t.Context(), stranger.Process.Pid); err != nil {
			t.Errorf("%q is no more: %v", strings.Join(stranger.Args, " "), err)
		}
	}
	if o := l.object(devID); o.State != providers.StateOff || len(o.Findings) > 0 {
		t.Errorf("afterwards it is %s: %s", o.State, findings(o))
	}
}

// A process of another user is none of an instance's, whatever its program is called; one of the owner of its folder
// is one, also for root.
func TestProcessesOfOthers(t *testing.T) {
	l := newLab(t)
	p, others := l.p, os.Getuid()+1
	for _, test := range []struct {
		uid  int
		exe  string
		want bool
	}{
		{os.Getuid(), "/usr/bin/qemu-system-x86_64", true},
		{os.Getuid(), "/usr/libexec/qemu-kvm", true},
		{os.Getuid(), "", true},
		{os.Getuid(), "/usr/bin/perl", false},
		{os.Getuid(), "/usr/local/bin/limactl", false},
		{others, "/usr/bin/qemu-system-x86_64", false},
	} {
		f := process.Found{Identity: process.Identity{PID: 1 << 21, Exe: test.exe}, UID: test.uid}
		if got := lima.IsQEMUOf(p, "lab.dev", f); got != test.want {
			t.Errorf("%s of user %d: %t, want %t", test.exe, test.uid, got, test.want)
		}
	}
}
