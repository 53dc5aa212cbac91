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

// seatName is the file of a data directory that tells it from the others of its project.
const seatName = "seat.json"

// seat is what a data directory is called, and where it was then: a copy of it is another
// one (DESIGN.md, rule 12a).
type seat struct {
	Seat    string `json:"seat"`
	Machine string `json:"machine"`
	Folder  string `json:"folder"` // what the file system calls the folder
	Path    string `json:"path"`
}

// Seat is what the data directory is called, so that what two of them make for one project
// differs; "": it has no seat yet, or is a copy of one that has. It changes nothing.
func (f Folder) Seat() (string, error) {
	text, err := os.ReadFile(filepath.Join(f.Dir, seatName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the seat of the data directory: %w", err)
	}
	var s seat
	if err := json.Unmarshal(text, &s); err != nil || s.Seat == "" {
		return "", nil // it gets another one
	}
	now, err := f.place()
	if err != nil {
		return "", err
	}
	_, gone := os.Lstat(s.Path)
	here := s.Path == now.Path || errors.Is(gone, fs.ErrNotExist)
	if here && (s.Machine == now.Machine || s.Folder == now.Folder) {
		return s.Seat, nil
	}
	return "", nil
}

// Sit gives the data directory a seat if it has none. The run lock is held.
func (f Folder) Sit(name string) error {
	has, err := f.Seat()
	if err != nil || has != "" {
		return err
	}
	s, err := f.place()
	if err != nil {
		return err
	}
	if err := atomicfile.Clean(filepath.Join(f.Dir, seatName)); err != nil { // of a run that was killed
		return err
	}
	s.Seat = name
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(f.Dir, seatName), append(text, '\n'), 0o600)
}

// place is where the data directory is now.
func (f Folder) place() (seat, error) {
	s := seat{Path: f.Dir, Machine: machine()}
	info, err := os.Stat(f.Dir)
	if err != nil {
		return s, fmt.Errorf("read the data directory: %w", err)
	}
	s.Folder = folderID(info)
	return s, nil
}

// machine is what this machine is called: machine-id(5), or its host name.
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
