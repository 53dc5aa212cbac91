package terraform

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"vmctl/internal/lockfile"
	"vmctl/internal/scratch"
)

// folderPrefix begins the names of the folders with the folders of sessions. The vmctl that opened the sessions holds the lock in it.
const folderPrefix = "vmctl-terraform-"

// sessionFolder makes the folder of a session, and returns it with the one around it.
func (p *Provider) sessionFolder(ctx context.Context) (dir, around string, err error) {
	p.scratching.Lock()
	defer p.scratching.Unlock()
	if p.folder == nil {
		if p.folder, err = scratch.Make(ctx, p.temp(), folderPrefix); err != nil {
			return "", "", err
		}
	}
	p.sessions++
	dir = filepath.Join(p.folder.Dir, strconv.Itoa(p.sessions))
	return dir, p.folder.Dir, os.Mkdir(dir, 0o700)
}

// removeFolder removes the folder of the sessions, which are closed.
func (p *Provider) removeFolder() error {
	p.scratching.Lock()
	defer p.scratching.Unlock()
	if p.folder == nil {
		return nil
	}
	folder := p.folder
	p.folder = nil
	return folder.Remove()
}

// temp returns the folder of the folders of sessions.
func (p *Provider) temp() string {
	if p.host.Temp == "" {
		return os.TempDir()
	}
	return p.host.Temp
}

// sweep removes the files that killed runs left: the folders with those of sessions, of which neither vmctl nor any Terraform lives, and
// the records of Terraforms that have ended. What cannot be removed stays for the next run.
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

// isUsed reports whether a Terraform lives that a record names in a folder with those of sessions, or in the folder of a session of an
// older vmctl.
func isUsed(dir string) (bool, error) {
	records, err := filepath.Glob(filepath.Join(dir, "*", recordName))
	if err != nil {
		return false, err
	}
	older, err := filepath.Glob(filepath.Join(dir, recordName+"*"))
	if err != nil {
		return false, err
	}
	for _, path := range append(records, older...) {
		if r, err := readRunning(path); err != nil || !r.ended() {
			return true, err
		}
	}
	return false, nil
}
