package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"vmctl/internal/atomicfile"
	"vmctl/internal/lockfile"
	"vmctl/internal/shellword"
	"vmctl/planner"
	"vmctl/providers"
)

// lastFolderFile is the file, in the data directory, that names the folder of the last apply.
const lastFolderFile = "last-apply.json"

type lastFolder struct {
	Folder string `json:"folder"` // absolute
}

// noteFolder writes down the folder of the spec that is applied. The caller holds the
// run lock.
func (p *project) noteFolder() error {
	if p.lastFolder() == p.config.Dir {
		return nil
	}
	text, err := json.Marshal(lastFolder{Folder: p.config.Dir})
	if err == nil {
		err = atomicfile.Write(filepath.Join(p.dir, lastFolderFile), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write down the folder of the spec: %w", err)
	}
	return nil
}

// tidy removes the leftovers of killed runs: a half-written file of noteFolder, and the
// record of a dead holder of the keys' lock. The caller holds the run lock.
func (p *project) tidy(ctx context.Context) error {
	if err := atomicfile.Clean(filepath.Join(p.dir, lastFolderFile)); err != nil {
		return err
	}
	_, err := lockfile.Clear(ctx, p.keys()+".lock")
	var held *lockfile.HeldError
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &held) { // the holder lives, and tidies up itself
		return nil
	}
	return err
}

// lastFolder returns the folder of the last apply, "" if it is unknown.
func (p *project) lastFolder() string {
	text, err := os.ReadFile(filepath.Join(p.dir, lastFolderFile))
	if err != nil {
		return ""
	}
	var last lastFolder
	if err := json.Unmarshal(text, &last); err != nil {
		return ""
	}
	return last.Folder
}

// warnings returns a line for each sign that the plan uses the wrong folder or data directory.
func (a *app) warnings(p *project, plan *planner.Plan) []string {
	return append(p.copied(plan), a.sudoed(p, plan)...)
}

// sudoed warns if root makes objects in root's own data directory, and the user who called
// sudo has a data directory of this project.
func (a *app) sudoed(p *project, plan *planner.Plan) []string {
	caller := a.getenv("SUDO_USER")
	makes := slices.ContainsFunc(plan.Changes, func(c planner.Change) bool { return c.Action == providers.Create })
	if caller == "" || !makes || a.env.HomeOf == nil || a.global.dataDir != "" || a.getenv("VMCTL_DATA_DIR") != "" {
		return nil
	}
	home := a.env.HomeOf(caller)
	if home == "" {
		return nil
	}
	theirs := folderIn(filepath.Join(home, ".local", "state"), p.owner)
	if _, err := os.Stat(theirs); err != nil || theirs == p.dir {
		return nil
	}
	return []string{caller + " has a data directory of this project, " + theirs + ", and with sudo vmctl uses " + p.dir +
		" and, without a uri, the system's libvirt: this plan makes everything a second time. Run vmctl as " + caller +
		", or name the directory: --data-dir=" + shellword.Quote(theirs)}
}

// copied warns if a plan destroys something and the last apply came from another folder that
// still exists: a copied folder is the same project.
func (p *project) copied(plan *planner.Plan) []string {
	destroys := slices.ContainsFunc(plan.Changes, func(c planner.Change) bool { return c.Action == providers.Destroy })
	last := p.lastFolder()
	if !destroys || last == "" {
		return nil
	}
	there, err := os.Stat(last)
	if err != nil || !there.IsDir() {
		return nil
	}
	if here, err := os.Stat(p.config.Dir); err != nil || os.SameFile(here, there) {
		return nil
	}
	return []string{"this plan destroys objects, and the last apply came from " + last + ", which still exists. A copied folder is the same " +
		"project, so these objects may belong to that folder's spec. Plan there, or use --env=NAME for another instance of the same files"}
}
