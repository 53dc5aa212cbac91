package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vmctl/internal/atomicfile"
)

// identityFile names the file that tells a data directory from the others of its project.
const identityFile = "seat.json"

// dirIdentity holds the ID of a data directory, and the machine, folder and path that the
// directory had when it got the ID: a copy in another place gets another ID (DESIGN.md, rule 12a).
type dirIdentity struct {
	ID      string `json:"seat"`
	Machine string `json:"machine"`
	Folder  string `json:"folder"` // folderID of the folder
	Path    string `json:"path"`
}

// DataDirID returns the ID of the data directory. It keeps apart the objects that two data
// directories make for one project. "": the directory has no readable ID yet, or is a copy of a
// directory with an ID. DataDirID changes nothing.
func (f Folder) DataDirID() (string, error) {
	text, err := os.ReadFile(filepath.Join(f.Dir, identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the ID of the data directory: %w", err)
	}
	var s dirIdentity
	if err := json.Unmarshal(text, &s); err != nil || s.ID == "" {
		return "", nil // SetDataDirID writes another one
	}
	now, err := f.currentIdentity()
	if err != nil {
		return "", err
	}
	_, gone := os.Lstat(s.Path)
	here := s.Path == now.Path || errors.Is(gone, fs.ErrNotExist)
	if here && (s.Machine == now.Machine || s.Folder == now.Folder) {
		return s.ID, nil
	}
	return "", nil
}

// SetDataDirID gives the data directory an ID if it has none. The caller holds the run lock.
func (f Folder) SetDataDirID(name string) error {
	has, err := f.DataDirID()
	if err != nil || has != "" {
		return err
	}
	s, err := f.currentIdentity()
	if err != nil {
		return err
	}
	if err := atomicfile.Clean(filepath.Join(f.Dir, identityFile)); err != nil { // temporary files of a killed run
		return err
	}
	s.ID = name
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(f.Dir, identityFile), append(text, '\n'), 0o600)
}

// currentIdentity returns the present machine, folder and path of the data directory, without
// an ID.
func (f Folder) currentIdentity() (dirIdentity, error) {
	s := dirIdentity{Path: f.Dir, Machine: machine()}
	info, err := os.Stat(f.Dir)
	if err != nil {
		return s, fmt.Errorf("read the data directory: %w", err)
	}
	s.Folder = folderID(info)
	return s, nil
}

// machine returns the ID of this machine: its machine-id(5), else its host name; "" if
// neither can be read.
func machine() string {
	if text, err := os.ReadFile("/etc/machine-id"); err == nil && len(strings.TrimSpace(string(text))) > 0 {
		return strings.TrimSpace(string(text))
	}
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	return host
}
