//go:build unix

package sim_test

import (
	"strings"
	"syscall"
	"testing"

	"vmctl/internal/real"
	"vmctl/providers"
)

// A host agent that gives no answer in time may be healthy: what its VM does is unknown.
func TestSilentAgentIsUnknown(t *testing.T) {
	real.Long(t)
	t.Parallel()
	l := newAgentLab(t)
	l.does(providers.Create, created)
	pid := l.recorded(agentFiles).PID
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(pid, s); err != nil {
			t.Error(err)
		}
	}
	signal(syscall.SIGSTOP)
	got := l.plain(l.described())
	signal(syscall.SIGCONT)
	if want := "lab.dev \nrunning: DIR/run/KEY.ha.pid: it runs, and gave no answer: "; !strings.Contains(got, want) {
		t.Errorf("of a suspended host agent, %s, want %s", got, want)
	}
	l.sees("lab.dev running")
}
