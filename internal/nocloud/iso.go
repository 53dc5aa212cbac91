package nocloud

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	backend "github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
)

// label is the volume label by which cloud-init finds the seed among the disks.
const label = "cidata"

// ISO returns the seed as the content of a CD-ROM. It writes the CD-ROM in the folder
// scratch, which holds secrets meanwhile. It removes that folder first, as a killed
// process may have left it, and again afterwards.
func (s Seed) ISO(scratch string) (content []byte, err error) {
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(scratch); err != nil {
		return nil, fmt.Errorf("write the seed: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	tree := filepath.Join(scratch, "tree")
	if err := os.MkdirAll(tree, 0o700); err != nil {
		return nil, fmt.Errorf("write the seed: %w", err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(tree, f.name), []byte(f.content), 0o600); err != nil {
			return nil, fmt.Errorf("write the seed: %w", err)
		}
	}
	out := filepath.Join(scratch, "seed.iso")
	if err := master(out, tree); err != nil {
		return nil, fmt.Errorf("write the seed: %w", err)
	}
	return os.ReadFile(out)
}

// master makes a file system of a folder. The long names are there for Linux
// (Rock Ridge) and for all else (Joliet): without them user-data is USER_DAT.
func master(out, tree string) (err error) {
	file, err := os.OpenFile(out, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	system, err := iso9660.Create(backend.New(file, false), 0, 0, 0, tree)
	if err != nil {
		return err
	}
	return system.Finalize(iso9660.FinalizeOptions{RockRidge: true, Joliet: true, VolumeIdentifier: label})
}
