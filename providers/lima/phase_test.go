package lima

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"vmctl/internal/process"
	"vmctl/providers"
)

// The run state follows from the processes that run, whatever the files of a run say: a pid file of a process that is
// gone, or that is another one by now, a socket that nobody serves, the record of a run.
//
// Traps 7 and 8: Lima v2.2.0 calls an instance Running as soon as signal 0 reaches the pids in ha.pid and qemu.pid
// (ReadPIDFile), which it does for a zombie, for a process that got the pid of one that is gone, and while the guest
// does not run.
//
// row L13, of Lima's VMs
// row L34, of Lima's VMs
func TestStateOfProcesses(t *testing.T) {
	const alive, gone, reused, unknown = "alive", "gone", "reused", "unknown"
	all := []string{alive, gone, reused, unknown}
	rapid.Check(t, func(t *rapid.T) {
		home, err := os.MkdirTemp("", "l") //nolint:usetesting // each case removes its own
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(home) //nolint:errcheck // of a test
		p := &Provider{home: home, version: func() string { return "" }}
		f := found{of: map[string]map[role][]process.Found{"box": {}}}
		agent, driver := rapid.SampledFrom(all).Draw(t, "host agent"), rapid.SampledFrom(all).Draw(t, "QEMU")
		write := func(name, content string) {
			if err := os.MkdirAll(filepath.Join(home, "box"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(home, "box", name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(defsFile, "cpus: 1\n")
		for r, is := range map[role]string{roleAgent: agent, roleDriver: driver} {
			switch is {
			case alive:
				f.of["box"][r] = []process.Found{{Identity: process.Identity{PID: 1 << 21}}}
			case gone:
				write(pidFiles[r], rapid.SampledFrom([]string{"", "2147483646\n", "0", "1", "-5"}).Draw(t, "pid"))
			case reused:
				write(pidFiles[r], fmt.Sprintln(os.Getpid()))
			case unknown:
				f.err = errors.New("the process table cannot be read")
			}
		}
		for _, name := range []string{agentSock, runName} {
			if rapid.Bool().Draw(t, name) {
				write(name, "{}")
			}
		}
		running := rapid.Bool().Draw(t, "it was reported running")
		if running {
			write(eventsLog, `{"status":{"running":true}}`+"\n")
		}
		s, err := p.readInstance(context.WithoutCancel(t.Context()), "box", f)
		if err != nil {
			t.Fatal(err)
		}
		want := providers.StateBroken
		switch {
		case slices.Contains([]string{agent, driver}, unknown):
			want = stateUnknown
		case agent == alive && driver == alive && !running: // it has just begun: nobody serves its monitor yet
			want = providers.StateRunning
		case agent != alive && driver != alive:
			want = providers.StateOff
		}
		if s.state != want {
			t.Fatalf("it is %q (%s), want %q", s.state, s.reason, want)
		}
		if said := s.leftover; want == providers.StateOff && (agent == reused || driver == reused) && !strings.Contains(said, "which is no process of it") {
			t.Fatalf("of a pid that is another process's by now it says %q", said)
		}
	})
}

// A process is an instance's by two whole arguments: the option, and the path of that instance's pid file. Other
// words and other paths that look alike are none of it.
//
// row L35, of Lima's VMs
func TestRoleIsExact(t *testing.T) {
	p := &Provider{home: "/h"}
	for _, test := range []struct {
		argv []string
		name string
		role role
	}{
		{[]string{"vmctl-lima", "hostagent", "--pidfile", "/h/box/ha.pid", "box"}, "box", roleAgent},
		{[]string{"qemu-system-x86_64", "-pidfile", "/h/box/qemu.pid"}, "box", roleDriver},
		{argv: []string{"vim", "/h/box/ha.pid"}},
		{argv: []string{"--pidfile", "/h/box/ha.pid"}}, // the name of the program itself
		{argv: []string{"grep", "--pidfile /h/box/ha.pid"}},
		{argv: []string{"x", "--pidfile=/h/box/ha.pid"}},
		{argv: []string{"x", "--pidfile", "/h/box/ha.pid.old"}},
		{argv: []string{"x", "--pidfile", "/h/box/qemu.pid"}},
		{argv: []string{"x", "-pidfile", "/h/box/ha.pid"}},
		{argv: []string{"x", "--pidfile", "/h/hostagent/box/ha.pid"}},
		{argv: []string{"x", "--pidfile", "/home/observer/h/box/ha.pid"}},
		{argv: []string{"x", "--my-pidfile", "/h/box/ha.pid"}},
		{argv: []string{"x", "--pidfile"}},
	} {
		name, r, ours := p.roleOf(test.argv)
		if name != test.name || r != test.role || ours != (test.name != "") {
			t.Errorf("%q: %q of %q, %t; want %q of %q", test.argv, r, name, ours, test.role, test.name)
		}
	}
}
