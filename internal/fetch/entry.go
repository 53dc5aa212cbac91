package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"vmctl/internal/lockfile"
)

// Entry is a download in the cache: a whole file, or the part of one that has arrived.
type Entry struct {
	Key    string    // the name of its folder
	URL    string    // without a password; "": it cannot be read
	SHA256 string    // hex, of the whole file; "": only a part of it is there
	Size   int64     // bytes on the disk
	Since  time.Time // the last bytes arrived then
	Busy   bool      // a process is at work on it
}

// List returns the downloads in the cache, the oldest first. It changes nothing.
func (c *Cache) List(ctx context.Context) ([]Entry, error) {
	folders, err := os.ReadDir(c.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the downloads: %w", err)
	}
	var all []Entry
	for _, folder := range folders {
		if !folder.IsDir() {
			continue // nothing of ours
		}
		e, err := c.entry(ctx, folder.Name())
		if err != nil {
			return nil, fmt.Errorf("list the downloads: %w", err)
		}
		if e.Size > 0 {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return a.Since.Compare(b.Since) })
	return all, nil
}

func (c *Cache) entry(ctx context.Context, key string) (Entry, error) {
	j := &job{cache: c, folder: filepath.Join(c.Dir, key)}
	e := Entry{Key: key}
	names, err := j.wholeFiles()
	if err != nil {
		return e, err
	}
	about := sourceName
	if len(names) > 0 {
		about, e.SHA256 = originName, names[0][len(wholeStem):]
	}
	for _, name := range append(names, partName) {
		info, err := os.Stat(j.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return e, err
		}
		e.Size += info.Size()
		if info.ModTime().After(e.Since) {
			e.Since = info.ModTime()
		}
	}
	if e.Size == 0 {
		return e, nil
	}
	var from source
	if data, err := os.ReadFile(j.path(about)); err == nil && json.Unmarshal(data, &from) == nil && from.URL != "" {
		e.URL = redacted(from.URL)
	}
	held, err := lockfile.Look(ctx, j.path(lockName))
	e.Busy = held.Held
	return e, err
}

// Remove removes a download from the cache. One on which a process is at work stays: the error is a *lockfile.HeldError
// then. Its lock stays, too, for processes that may wait for it.
func (c *Cache) Remove(ctx context.Context, key string) error {
	j := &job{cache: c, folder: filepath.Join(c.Dir, key)}
	held, err := lockfile.Acquire(ctx, lockfile.Request{Path: j.path(lockName), Owner: c.Owner})
	if err != nil {
		return err
	}
	return errors.Join(j.removeWholeFiles(""), remove(j.path(originName)), j.removePart(), held.Release())
}
