//go:build unix

package lockfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockExclusive locks f or fails with errHeld.
func lockExclusive(f *os.File) error { return flock(f, unix.LOCK_EX|unix.LOCK_NB) }

// lockShared locks f against exclusive locks only, or fails with errHeld.
func lockShared(f *os.File) error { return flock(f, unix.LOCK_SH|unix.LOCK_NB) }

// unlock frees f also where a child that is just being started has a copy of
// its descriptor.
func unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return explain(err)
		}
	}
}

func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return errHeld
	case errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS),
		errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EINVAL):
		return unsupported(err)
	default:
		return err
	}
}
