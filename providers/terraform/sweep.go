package terraform

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"vmctl/internal/lockfile"
)

// folderPrefix begins the names of the folders of sessions, lockName is the name of the lock in them: the vmctl that
// opened the session holds it.
const (
	folderPrefix = "vmctl-terraform-"
	lockName     = "lock"
)

// temp returns the folder of the folders of sessions.
func (p *Provider) temp() string {
	if p.host.Temp == "" {
		return os.TempDir()
	}
	return p.host.Temp
}

// newFolder makes the folder of a session, with its lock. Another vmctl that sweeps may take it for a left one before it is
// locked: then there is another try.
func (p *Provider) newFolder(ctx context.Context) (dir string, lock *lockfile.Lock, err error) {
	for range 3 {
		if dir, err = os.MkdirTemp(p.temp(), folderPrefix); err != nil {
			return "", nil, err
		}
		if lock, err = lockfile.Acquire(ctx, lockfile.Request{Path: filepath.Join(dir, lockName), Owner: lockfile.Owner{PID: os.Getpid()}}); err == nil {
			return dir, lock, nil
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return "", nil, err
}

// sweep removes the files that killed runs left: the folders of sessions, of which neither vmctl nor Terraform lives, and the
// records of Terraforms that have ended. What cannot be removed stays for the next run.
func (p *Provider) sweep(ctx context.Context) {
	entries, err := os.ReadDir(p.temp())
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if strings.HasPrefix(e.Name(), folderPrefix) && err == nil && info.IsDir() && isMine(info) {
			_ = sweepFolder(ctx, filepath.Join(p.temp(), e.Name())) //nolint:errcheck // the next run tries again
		}
	}
	workspaces, err := p.folders()
	if err != nil {
		return // Observe tells
	}
	for _, w := range workspaces {
		r, err := readRunning(p.recordPath(w.name))
		if err != nil || r == nil || !r.ended() {
			continue
		}
		// Without the run lock, a run may go on at the same time: the record of its Terraform is not a left one.
		if _, held, err := lockfile.Holder(ctx, filepath.Join(r.Folder, lockName)); err == nil && !held {
			_ = os.Remove(p.recordPath(w.name)) //nolint:errcheck // the next run tries again
		}
	}
}

// sweepFolder removes the folder of a session. It takes the lock only where no Terraform lives: leftRunning would take its hold
// for that of a vmctl.
func sweepFolder(ctx context.Context, dir string) error {
	if used, err := isUsed(dir); err != nil || used {
		return err
	}
	lock, err := lockfile.Acquire(ctx, lockfile.Request{Path: filepath.Join(dir, lockName)})
	if err != nil {
		return err
	}
	used, err := isUsed(dir)
	if err == nil && !used {
		err = os.RemoveAll(dir)
	}
	return errors.Join(err, lock.Release())
}

// isUsed reports whether a Terraform lives that a record in the folder of a session names: its own, or that of a session which uses
// its init.
func isUsed(dir string) (bool, error) {
	records, err := filepath.Glob(filepath.Join(dir, recordName+"*"))
	if err != nil {
		return false, err
	}
	for _, path := range records {
		if r, err := readRunning(path); err != nil || !r.ended() {
			return true, err
		}
	}
	return false, nil
}
