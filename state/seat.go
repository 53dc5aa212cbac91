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

// seatName names the file that tells a data directory from the others of its project.
const seatName = "seat.json"

// seat holds the name of a data directory, and the place of the directory when it got the
// name: a copy in another place gets another seat (DESIGN.md, rule 12a).
type seat struct {
	Seat    string `json:"seat"`
	Machine string `json:"machine"`
	Folder  string `json:"folder"` // folderID of the folder
	Path    string `json:"path"`
}

// Seat returns the name of the data directory. The name tells apart the objects that two
// data directories make for one project. "": the directory has no readable seat yet, or is
// a copy of one that has a seat. Seat changes nothing.
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
		return "", nil // Sit writes another one
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

// Sit gives the data directory a seat if it has none. The caller holds the run lock.
func (f Folder) Sit(name string) error {
	has, err := f.Seat()
	if err != nil || has != "" {
		return err
	}
	s, err := f.place()
	if err != nil {
		return err
	}
	if err := atomicfile.Clean(filepath.Join(f.Dir, seatName)); err != nil { // temporary files of a killed run
		return err
	}
	s.Seat = name
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(f.Dir, seatName), append(text, '\n'), 0o600)
}

// place returns a seat without a name for the present place of the data directory.
func (f Folder) place() (seat, error) {
	s := seat{Path: f.Dir, Machine: machine()}
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
