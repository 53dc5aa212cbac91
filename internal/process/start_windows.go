package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// detached gives a child a console of its own, which nobody sees or closes.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW}
}

// Requested returns a context that ends when ctx does, when this process is
// requested to end, as by Host.Request, or when cancel is called, which the
// caller does in the end. Until Requested is called requests fail.
func Requested(ctx context.Context) (requested context.Context, cancel context.CancelFunc, err error) {
	name, err := eventName(int(windows.GetCurrentProcessId()), windows.CurrentProcess())
	if err != nil {
		return nil, nil, fmt.Errorf("wait for requests to end: %w", err)
	}
	event, err := windows.CreateEvent(nil, 1, 0, name)
	if err != nil && (event == 0 || !errors.Is(err, windows.ERROR_ALREADY_EXISTS)) {
		return nil, nil, fmt.Errorf("wait for requests to end: %w", err)
	}
	over, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("wait for requests to end: %w", err), windows.CloseHandle(event))
	}
	requested, cancel = context.WithCancel(ctx)
	context.AfterFunc(requested, func() { signal(over) })
	go func() {
		await(event, over)
		cancel()
		await(over)
		closeAll(event, over)
	}()
	return requested, cancel, nil
}

// The handles of Requested are its own and stay open until both have been
// awaited: nothing below can fail but for a mistake here.

func signal(event windows.Handle) {
	if err := windows.SetEvent(event); err != nil {
		panic(err)
	}
}

func await(events ...windows.Handle) {
	if _, err := windows.WaitForMultipleObjects(events, false, windows.INFINITE); err != nil {
		panic(err)
	}
}

func closeAll(events ...windows.Handle) {
	for _, event := range events {
		if err := windows.CloseHandle(event); err != nil {
			panic(err)
		}
	}
}

// AskChild ends a child of this process: nothing asks a program with a window of its own.
func AskChild(child *os.Process) error { return child.Kill() }
