package lima

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"time"

	"vmctl/internal/clock"
	"vmctl/internal/process"
)

// dialLimit is the time in which somebody who serves a socket of this machine accepts.
const dialLimit = time.Second

// closeTime is the time between two looks at the socket of a process that may be ending.
const closeTime = 20 * time.Millisecond

// mayRunUnseen returns the reason why an instance without a visible process may run all the same, where this process does
// not see it: in another container, or on another machine that shares the home. nil: it does not.
func (p *Provider) mayRunUnseen(ctx context.Context, name string) error {
	for _, file := range []string{agentSock, qmpSock} {
		path := p.path(name, file)
		served := isServed(path)
		for range 5 { // a process that ends cannot be seen any more a moment before its sockets are closed
			if !served || !clock.Pause(ctx, closeTime) {
				break
			}
			served = isServed(path)
		}
		if served {
			return fmt.Errorf("somebody answers at %s, and no process of it can be seen from here: run vmctl where it runs", path)
		}
	}
	r, err := p.runRecord(name)
	if err != nil || r.Agent == nil || !p.leftRun(name) {
		return nil //nolint:nilerr // it has not run, or what it left is judged by the processes alone
	}
	if verdict, reason := p.processes.Verify(*r.Agent); verdict == process.Unknown {
		return fmt.Errorf("its host agent was %s; if it is certain that nothing of it runs there, remove %s", reason, p.path(name, runName))
	}
	return nil
}

// leftRun reports whether an instance has files that a run removes at its end.
func (p *Provider) leftRun(name string) bool {
	for _, file := range []string{agentPid, agentSock, driverPid, qmpSock} {
		if exists(p.path(name, file)) {
			return true
		}
	}
	return false
}

// isServed reports whether somebody accepts connections at a socket, or may do so: only the kernel's word that nobody
// listens there counts as that.
func isServed(path string) bool {
	if !exists(path) {
		return false
	}
	conn, err := net.DialTimeout("unix", path, dialLimit)
	if err == nil {
		_ = conn.Close() //nolint:errcheck // nothing was said
		return true
	}
	late := net.Error(nil)
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EAGAIN) || errors.As(err, &late) && late.Timeout()
}
