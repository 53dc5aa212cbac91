package job

import (
	"errors"
	"syscall"

	"vmctl/internal/lockfile"
)

// CodeOf returns the code of a failure: that of its cause if it is a full disk or a lock that another process held, else a code that
// says what failed.
func CodeOf[T ~string](err error, what T) T {
	var held *lockfile.HeldError
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return T(DiskFull)
	case errors.As(err, &held):
		return T(Locked)
	default:
		return what
	}
}
