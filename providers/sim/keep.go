package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vmctl/internal/atomicfile"
	"vmctl/providers"
)

// keptFile is a file in a guest.
type keptFile struct {
	ID      providers.ID `json:"id,omitempty"`
	Owner   *owner       `json:"owner,omitempty"`
	Content string       `json:"content"`
}

func (p *Provider) guestPath(name string) string { return p.path(disksDir, name+guestSuffix) }

// keep carries out a request about a guest's files, and returns all files. They survive the
// next start.
func (m *vmProcess) keep(q question) (map[string]keptFile, error) { return keepIn(m.Guest, q) }

func keepIn(path string, q question) (map[string]keptFile, error) {
	files := map[string]keptFile{}
	if err := readJSON(path, &files); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	switch {
	case q.Ask == askFiles:
		return files, nil
	case q.Ask == askRemove:
		delete(files, q.Path)
	case q.File == nil:
		return nil, errors.New("there is no file to write")
	default:
		files[q.Path] = *q.File
	}
	if len(files) == 0 {
		return files, atomicfile.Remove(path)
	}
	return files, replaceJSON(path, files)
}

// replaceJSON replaces a guest's file. A guest can be killed at any time, without any lock:
// the file is the old one or the new one.
func replaceJSON(path string, content any) error {
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temp := path + partSuffix
	if err := os.WriteFile(temp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
