package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vmctl/internal/atomicfile"
	"vmctl/providers"
)

// mountNote describes a mount that vmctl makes. This host keeps it from before the mount is made until it and its folders are gone.
type mountNote struct {
	Path    string
	Options []string
	Made    []string `json:",omitempty"` // the folders that were made for it, the innermost first
}

func (p *Provider) noteFolder() string { return filepath.Join(p.settings.Dir, "mounts") }

func (p *Provider) notePath(id providers.ID) string {
	return filepath.Join(p.noteFolder(), strings.ReplaceAll(string(id), "/", "_")+".json")
}

// readNote reads the note about the mount of a workspace; nil: there is none.
func (p *Provider) readNote(id providers.ID) (*mountNote, error) {
	return readNoteFile(p.notePath(id))
}

func readNoteFile(path string) (*mountNote, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is known about a mount: %w", err)
	}
	n := &mountNote{}
	if err := json.Unmarshal(text, n); err != nil {
		return nil, fmt.Errorf("read what is known about a mount: %s: %w", path, err)
	}
	return n, nil
}

// madeAround returns the folders around a path that were made for other mounts, the innermost first: the last mount in them removes
// them. The other workspaces may be in other VMs, whose notes are in the folders beside.
func (p *Provider) madeAround(path string) (made []string, err error) {
	notes, err := filepath.Glob(filepath.Join(filepath.Dir(p.settings.Dir), "*", filepath.Base(p.noteFolder()), "*.json"))
	if err != nil {
		return nil, err
	}
	others := map[string]bool{}
	for _, file := range notes {
		n, err := readNoteFile(file)
		if err != nil {
			return nil, err
		}
		if n == nil { // it went meanwhile
			continue
		}
		for _, folder := range n.Made {
			others[folder] = true
		}
	}
	for at := filepath.Dir(path); at != filepath.Dir(at); at = filepath.Dir(at) {
		if others[at] {
			made = append(made, at)
		}
	}
	return made, nil
}

func (p *Provider) writeNote(id providers.ID, n mountNote) error {
	text, err := json.Marshal(n)
	if err == nil {
		err = os.MkdirAll(p.noteFolder(), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(p.notePath(id), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("note what is mounted: %w", err)
	}
	return nil
}

// dropNote removes the note about a mount that is gone.
func (p *Provider) dropNote(id providers.ID) error {
	if err := os.Remove(p.notePath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("note what is mounted: %w", err)
	}
	for _, empty := range []string{p.noteFolder(), p.settings.Dir} {
		if os.Remove(empty) != nil { // it is not empty
			break
		}
	}
	return nil
}
