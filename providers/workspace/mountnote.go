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
	text, err := os.ReadFile(p.notePath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is known about a mount: %w", err)
	}
	n := &mountNote{}
	if err := json.Unmarshal(text, n); err != nil {
		return nil, fmt.Errorf("read what is known about a mount: %s: %w", p.notePath(id), err)
	}
	return n, nil
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
