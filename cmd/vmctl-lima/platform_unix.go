//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// endSignals are the signals that request a process to end.
func endSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// ownSession starts a process that no terminal and no process group of the caller reaches.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// syncDir waits until the names in a folder are on the disk.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
