package main

import (
	"os"
	"syscall"
)

// endSignals are the signals that request a process to end.
func endSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// ownSession starts a process that no console signal of the caller reaches.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// syncDir does nothing: Windows has no such request.
func syncDir(string) error { return nil }
