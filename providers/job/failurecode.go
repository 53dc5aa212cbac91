package job

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
)

// conclude writes how a run ended. If that fails, it writes that the run ended and why the rest cannot be told: no record stays one of a
// job that runs. The error says which write failed.
func (s Store) conclude(ctx context.Context, id ID, worker process.Identity, o Outcome, now func() time.Time) error {
	_, err := s.Update(ctx, id, func(r *Record) error { return Finish(r, worker, o, now()) })
	var state *StateError
	switch {
	case err == nil, errors.As(err, &state):
		return err
	case errors.Is(err, fs.ErrNotExist): // who read that it has ended has removed it while its folder was synced
		return nil
	}
	o.ErrorCode, o.Reason = CodeOf(err, FinalizationFailed), err.Error()
	_, again := s.Update(ctx, id, func(r *Record) error { return Finish(r, worker, o, now()) })
	return errors.Join(err, again)
}

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
