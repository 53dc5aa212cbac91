package lockfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockExclusive locks f or fails with errHeld.
func lockExclusive(f *os.File) error {
	return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
}

// lockShared locks f against exclusive locks only, or fails with errHeld.
func lockShared(f *os.File) error { return lock(f, windows.LOCKFILE_FAIL_IMMEDIATELY) }

func unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, new(windows.Overlapped))
}

func lock(f *os.File, flags uint32) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	switch {
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return errHeld
	case errors.Is(err, windows.ERROR_NOT_SUPPORTED), errors.Is(err, windows.ERROR_INVALID_FUNCTION):
		return unsupported(err)
	default:
		return err
	}
}
