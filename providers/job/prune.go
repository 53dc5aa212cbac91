package job

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Keep counts the ended jobs of each workspace, or folder, whose records and output stay.
const Keep = 50

// Prune removes the records and the output of ended jobs, the oldest first, until keep of each workspace are left,
// and of each folder for those that ran in no workspace. What has not ended stays, and so do the newest job of each block
// and the newest of it that has ended a run, which tells whether the block is due, and what cannot be read, and what still has
// its copy, or something mounted in its folder. So do not the folders without a record that a killed vmctl left. Nothing outside of the store is
// removed. The error has what could not be removed.
func (s Store) Prune(keep int, now time.Time) (removed []ID, err error) {
	all, _, err := s.List()
	bare := s.bareFolders(now)
	if err != nil || len(all) <= keep && len(bare) == 0 {
		return nil, err
	}
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	stays := s.lastOfBlocks(all)
	slices.SortStableFunc(all, func(a, b Record) int { return b.Ended.Compare(a.Ended) })
	kept := map[string]int{}
	var errs []error
	for _, name := range bare {
		if err := unmounted(s.Path(ID(name), "")); err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", s.Path(ID(name), ""), err))
			continue
		}
		errs = append(errs, root.RemoveAll(name))
	}
	for _, r := range all {
		if !r.Status.IsTerminal() || stays[r.ID] || !isGone(s.Path(r.ID, copyFolder)) {
			continue
		}
		place := cmp.Or(r.Workspace, "folder "+r.Dir)
		if kept[place]++; kept[place] <= keep {
			continue
		}
		if err := unmounted(s.Path(r.ID, "")); err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", s.Path(r.ID, ""), err))
			continue
		}
		// The record goes first: a job without one is not listed, whatever is left of it.
		if err := errors.Join(absent(root.Remove(string(r.ID)+"/"+recordFile)), root.RemoveAll(string(r.ID))); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, r.ID)
	}
	return removed, errors.Join(errs...)
}

// bareFolders returns the folders of jobs that have no record: it was removed and they were not, or it was never written. One
// that was changed within the Window may get its record yet.
func (s Store) bareFolders(now time.Time) (names []string) {
	entries, _ := os.ReadDir(s.Dir) //nolint:errcheck // List tells
	for _, e := range entries {
		if !e.IsDir() || ID(e.Name()).Check() != nil {
			continue
		}
		if id := ID(e.Name()); !isGone(s.Path(id, recordFile)) || !isGone(s.Path(id, copyFolder)) {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) >= Window {
			names = append(names, e.Name())
		}
	}
	return names
}

// lastOfBlocks returns the jobs that tell about their blocks: of each the newest, and the last that ran and has ended.
func (s Store) lastOfBlocks(all []Record) map[ID]bool {
	stays, blocks := map[ID]bool{}, map[string][]Record{}
	for _, r := range all {
		if r.Block != "" {
			blocks[r.Block] = append(blocks[r.Block], r)
		}
	}
	for _, jobs := range blocks {
		stays[newest(jobs, func(Record) bool { return true }).ID] = true
		if last := newest(jobs, func(r Record) bool { return r.Status.IsTerminal() && r.ErrorCode != NotLaunched }); last != nil {
			stays[last.ID] = true
		}
	}
	return stays
}

// absent takes it for no error that a file is gone.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
