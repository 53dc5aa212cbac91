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

// diskFile says whose a disk is, and what it is. It lies beside the disk's own
// file, which is the guest's and as large as the disk: it is written before that
// is made, and removed after it. Without that there is no disk.
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

// diskSight is all that was seen of one disk.
type diskSight struct {
	diskFile        // of an unmarked one only its name, and as its ID its path
	copyOf   string // the name that its mark was written for, where that is another
	size     uint64 // bytes
	lock     lock
}

// bears reports whether the disk has the mark of an address of a project, and is no copy
// of the one that it was written for.
func (s diskSight) bears(lineage string, a spec.Address) bool {
	o := s.Owner
	return o != nil && s.copyOf == "" && o.ID == lineage && o.Of == s.ID && o.Address == a
}

// readMark reads what lies beside a disk. One that is not there is
// fs.ErrNotExist.
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

// lookDisk reads one disk. alive is what runs the host's VMs. One that does not
// exist is fs.ErrNotExist.
func (p *Provider) lookDisk(name string, alive []process.Identity) (diskSight, error) {
	info, err := os.Lstat(p.diskPath(name))
	switch {
	case err != nil:
		return diskSight{}, err
	case !info.Mode().IsRegular():
		return diskSight{}, fmt.Errorf("%s is no plain file", p.diskPath(name))
	}
	s := diskSight{size: uint64(info.Size())}
	s.diskFile, err = p.readMark(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.diskFile = diskFile{ID: providers.ID(p.diskPath(name)), Name: name}
	case err != nil:
		return diskSight{}, err
	case s.Name != name: // somebody copied the mark along
		s.copyOf, s.ID, s.Name = s.Name, providers.ID(p.diskPath(name)), name
	}
	s.lock = p.seeLock(p.diskLock(name), alive)
	return s, nil
}

// diskReading is what came of one disk.
type diskReading struct {
	name string
	diskSight
	err error
}

// lookDisks reads every disk of the host.
func (p *Provider) lookDisks(alive []process.Identity) ([]diskReading, error) {
	names, err := p.named(disksDir, diskSuffix)
	if err != nil {
		return nil, err
	}
	var all []diskReading
	for _, name := range names {
		s, err := p.lookDisk(name, alive)
		if !errors.Is(err, fs.ErrNotExist) { // else it was deleted meanwhile
			all = append(all, diskReading{name: name, diskSight: s, err: err})
		}
	}
	return all, nil
}

// attached is a disk that a VM is defined with. Which one that is its file says,
// so that a name decides; the ID is what the disk had then.
type attached struct {
	Address spec.Address `json:"address,omitzero"`
	ID      providers.ID `json:"id,omitempty"`
	Name    string       `json:"name"`
}

// is reports whether the disk that was attached is the one that is there now. One
// that nobody marked may have got its mark meanwhile, or have lost it.
func (a attached) is(d diskSight) bool {
	unmarked := a.ID == "" || filepath.IsAbs(string(a.ID)) || d.Owner == nil
	return a.Name == d.Name && (unmarked || a.ID == d.ID)
}

func diskLockClaim(name string) providers.Claim {
	return providers.Claim{Kind: claimDiskLock, Key: name}
}

func diskNameClaim(name string) providers.Claim {
	return providers.Claim{Kind: claimDiskName, Key: name}
}

// want is what a disk is to be.
type diskWant struct {
	size uint64 // bytes
	as   string
}
