package terraform

import (
	"context"
	"os"
	"path/filepath"

	"vmctl/internal/lockfile"
	"vmctl/internal/scratch"
)

// folderPrefix begins the names of the folders of sessions. The vmctl that opened the session holds the lock in its folder.
const folderPrefix = "vmctl-terraform-"

// temp returns the folder of the folders of sessions.
func (p *Provider) temp() string {
	if p.host.Temp == "" {
		return os.TempDir()
	}
	return p.host.Temp
}

// sweep removes the files that killed runs left: the folders of sessions, of which neither vmctl nor Terraform lives, and the
// records of Terraforms that have ended. What cannot be removed stays for the next run.
func (p *Provider) sweep(ctx context.Context) {
	// The lock is taken only where no Terraform lives: leftRunning would take the sweep's hold for that of a vmctl.
	scratch.Sweep(ctx, p.temp(), folderPrefix, func(dir string) bool {
		used, err := isUsed(dir)
		return err != nil || used
	})
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
		if _, held, err := lockfile.Holder(ctx, filepath.Join(r.Folder, scratch.LockName)); err == nil && !held {
			_ = os.Remove(p.recordPath(w.name)) //nolint:errcheck // the next run tries again
		}
	}
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
