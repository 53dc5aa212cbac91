package process

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/windows"

	"vmctl/internal/clock"
)

// winHandle is a kernel's handle: its pid is not given to another while it is
// open.
type winHandle struct {
	pid     int
	process windows.Handle
}

func (win) Open(pid int) (handle, error) {
	process, err := open(pid, looking)
	if err != nil {
		return nil, err
	}
	return winHandle{pid: pid, process: process}, nil
}

func (h winHandle) Close() error { return windows.CloseHandle(h.process) }

// Request sets the event for which a process waits that called Requested. Others
// cannot be asked.
func (h winHandle) Request() (err error) {
	ended, err := hasEnded(h.process, 0)
	if err != nil {
		return err
	}
	if ended {
		return errNone
	}
	name, err := eventName(h.pid, h.process)
	if err != nil {
		return err
	}
	event, err := windows.OpenEvent(windows.EVENT_MODIFY_STATE, false, name)
	if errors.Is(err, windows.ERROR_FILE_NOT_FOUND) {
		return errors.New("it takes no requests: only force ends it")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(event)) }()
	return windows.SetEvent(event)
}

// eventName is of one process, and found from every session of the machine.
func eventName(pid int, process windows.Handle) (*uint16, error) {
	start, err := created(process)
	if err != nil {
		return nil, err
	}
	return windows.UTF16PtrFromString(fmt.Sprintf(`Global\vmctl-request-%d-%d`, pid, start))
}

// Force ends the process first, so that it starts no more, and then whoever
// descends from it: they keep its number, which nobody else is given meanwhile.
func (h winHandle) Force() error {
	if err := terminate(h.process, h.pid); err != nil {
		return err
	}
	start, err := created(h.process)
	if err != nil {
		return err
	}
	pids, err := win{}.Tree(h.pid)
	if err != nil {
		return err
	}
	for _, pid := range pids[1:] {
		err = errors.Join(err, terminateChild(pid, start))
	}
	return err
}

// terminate ends the process that the handle holds.
func terminate(held windows.Handle, pid int) (err error) {
	if ended, err := hasEnded(held, 0); err != nil || ended {
		return err
	}
	process, err := open(pid, windows.PROCESS_TERMINATE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(process)) }()
	return windows.TerminateProcess(process, 1)
}

// terminateChild ends pid, unless the number belongs to somebody by now who is
// older than the ancestor's start.
func terminateChild(pid int, ancestor uint64) (err error) {
	held, err := open(pid, looking)
	if errors.Is(err, errNone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(held)) }()
	start, err := created(held)
	if err != nil || start < ancestor {
		return err
	}
	return terminate(held, pid)
}

func (h winHandle) Ended(ctx context.Context) bool {
	for ctx.Err() == nil {
		ended, err := hasEnded(h.process, uint32(pollEvery.Milliseconds()))
		if ended {
			return true
		}
		if err != nil {
			clock.Pause(ctx, pollEvery)
			return false
		}
	}
	return false
}
