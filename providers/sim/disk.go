package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/spec"
)

// diskFile is the mark of a disk: its owner and its format. It lies beside the disk's own
// file, which is the guest's and as large as the disk. It is written before that file is
// made, and removed after it. Without the disk's own file there is no disk.
type diskFile struct {
	Format int          `json:"format"`
	ID     providers.ID `json:"id"`
	Name   string       `json:"name"`
	Owner  *owner       `json:"owner,omitempty"`
	As     string       `json:"as,omitempty"` // qcow2, raw
}

const fileFormat = 1 // of a disk's file

func (p *Provider) diskPath(name string) string { return p.path(disksDir, name+diskSuffix) }
func (p *Provider) diskMark(name string) string { return p.path(disksDir, name+markSuffix) }
func (p *Provider) diskLock(name string) string { return p.diskPath(name) + lockSuffix }

// observedDisk holds all observations of one disk.
type observedDisk struct {
	diskFile        // of an unmarked disk: its name, and its path as the ID
	copyOf   string // the name that its mark was written for, where that is another
	size     uint64 // bytes
	lock     lock
}

// bears reports whether the disk has the mark of that address and project, and the mark was
// written for this disk.
func (s observedDisk) bears(lineage string, a spec.Address) bool {
	o := s.Owner
	return o != nil && s.copyOf == "" && o.ID == lineage && o.Of == s.ID && o.Address == a
}

// readMark reads the mark beside a disk. A missing mark is fs.ErrNotExist.
func (p *Provider) readMark(name string) (diskFile, error) {
	var f diskFile
	path := p.diskMark(name)
	if err := readJSON(path, &f); err != nil {
		return f, err
	}
	switch {
	case f.Format != fileFormat:
		return f, fmt.Errorf("read %s: it has format %d, and this vmctl knows format %d", path, f.Format, fileFormat)
	case f.ID == "":
		return f, fmt.Errorf("read %s: it says nothing of the disk's ID", path)
	}
	return f, nil
}

// observeDisk reads one disk. alive lists the processes of the host's VMs. A missing disk is
// fs.ErrNotExist.
func (p *Provider) observeDisk(name string, alive []process.Identity) (observedDisk, error) {
	info, err := os.Lstat(p.diskPath(name))
	switch {
	case err != nil:
		return observedDisk{}, err
	case !info.Mode().IsRegular():
		return observedDisk{}, fmt.Errorf("%s is no plain file", p.diskPath(name))
	}
	s := observedDisk{size: uint64(info.Size())}
	s.diskFile, err = p.readMark(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.diskFile = diskFile{ID: providers.ID(p.diskPath(name)), Name: name}
	case err != nil:
		return observedDisk{}, err
	case s.Name != name: // somebody copied the mark along
		s.copyOf, s.ID, s.Name = s.Name, providers.ID(p.diskPath(name)), name
	}
	s.lock = p.observeLock(p.diskLock(name), alive)
	return s, nil
}

// diskReading holds one disk as it was read, or the error of reading it.
type diskReading struct {
	name string
	observedDisk
	err error
}

// observeDisks reads every disk of the host.
func (p *Provider) observeDisks(alive []process.Identity) ([]diskReading, error) {
	names, err := p.named(disksDir, diskSuffix)
	if err != nil {
		return nil, err
	}
	var all []diskReading
	for _, name := range names {
		s, err := p.observeDisk(name, alive)
		if !errors.Is(err, fs.ErrNotExist) { // else it was deleted meanwhile
			all = append(all, diskReading{name: name, observedDisk: s, err: err})
		}
	}
	return all, nil
}

// attached is a disk that a VM is defined with. The VM's file names it, so that the name
// decides; ID is the ID that the disk had then.
type attached struct {
	Address spec.Address `json:"address,omitzero"`
	ID      providers.ID `json:"id,omitempty"`
	Name    string       `json:"name"`
}

// is reports whether the attached disk is the present one of its name. A disk without a mark
// may have got its mark meanwhile, or have lost it.
func (a attached) is(d observedDisk) bool {
	unmarked := a.ID == "" || filepath.IsAbs(string(a.ID)) || d.Owner == nil
	return a.Name == d.Name && (unmarked || a.ID == d.ID)
}

func diskLockClaim(name string) providers.Claim {
	return providers.Claim{Kind: claimDiskLock, Key: name}
}

func diskNameClaim(name string) providers.Claim {
	return providers.Claim{Kind: claimDiskName, Key: name}
}

// diskWant describes a wanted disk.
type diskWant struct {
	size uint64 // bytes
	as   string
}
