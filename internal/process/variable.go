package process

import (
	"context"
	"errors"
	"fmt"
	"os"

	"vmctl/internal/clock"
)

// variableReader is a system that reads the variables of processes.
type variableReader interface {
	// HasVariable reports whether a process was started with a variable (NAME=value). known is false
	// while its program is being replaced, and for a process without any variable.
	HasVariable(pid int, entry string) (has, known bool)
}

// WithVariable returns the processes that were started with a variable (NAME=value) and live, by
// pid. A process hands its variables on to all that it starts, unless that is started without.
// Processes of other users, and those that hide their variables, are left out. On a system that
// does not show the variables of processes, the error wraps errors.ErrUnsupported.
func (h Host) WithVariable(ctx context.Context, entry string) ([]Identity, error) {
	reader, ok := h.sys().(variableReader)
	if !ok {
		return nil, fmt.Errorf("find processes by a variable: %w", errors.ErrUnsupported)
	}
	here, err := h.sys().HostIdentity()
	if err != nil {
		return nil, fmt.Errorf("find processes by a variable: %w", err)
	}
	pids, err := h.sys().PIDs()
	if err != nil {
		return nil, fmt.Errorf("find processes by a variable: %w", err)
	}
	var found []Identity
	paused := false
	for _, pid := range pids {
		if pid <= 1 || pid == os.Getpid() {
			continue
		}
		has, known := reader.HasVariable(pid, entry)
		s, err := h.sys().Look(pid)
		if err != nil || s.Ended {
			continue
		}
		if !known && s.Exe != "" { // it may be between two programs
			if !paused {
				clock.Pause(ctx, pollEvery)
				paused = true
			}
			has, _ = reader.HasVariable(pid, entry)
		}
		if has {
			found = append(found, here.identity(pid, s))
		}
	}
	return found, nil
}
