package lima

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"vmctl/internal/qcow2"
	"vmctl/providers"
	"vmctl/providers/machine"
)

// The formats of disks.
const (
	formatRaw   = "raw"
	formatQcow2 = "qcow2"
)

// diskSize returns the size of a disk as a guest sees it, in bytes, and its format.
func diskSize(path string) (size uint64, format string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		return 0, "", err
	}
	begin := make([]byte, len(qcow2Magic))
	if _, err := f.ReadAt(begin, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, "", err
	}
	if string(begin) != qcow2Magic {
		return uint64(info.Size()), formatRaw, nil
	}
	h, err := qcow2.Read(f, info.Size())
	if err != nil {
		return 0, "", fmt.Errorf("read %s: %w", path, err)
	}
	return h.VirtualSize, formatQcow2, nil
}

const qcow2Magic = "QFI\xfb"

// observedDisk holds all observations of one disk.
type observedDisk struct {
	name   string
	id     providers.ID
	mark   *mark // nil: it bears none of its own
	copied *mark // a mark that was written for another disk
	size   uint64
	format string
	lock   lock
}

// readDisk reads the files of a disk. fs.ErrNotExist: there is none; a folder without a disk in it is
// half made or half deleted.
func (p *Provider) readDisk(name string) (*observedDisk, error) {
	d := &observedDisk{name: name, id: unmarkedID("disk", name)}
	m, err := readMark(p.diskPath(name, markName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case m.Name != name:
		d.copied = &m
	default:
		d.mark, d.id = &m, m.ID
	}
	d.size, d.format, err = diskSize(p.diskPath(name, dataDisk))
	return d, err
}

func (d *observedDisk) owner() *providers.Mark {
	switch {
	case d.mark != nil:
		return d.mark.Owner.mark()
	case d.copied != nil:
		return d.copied.Owner.mark()
	}
	return nil
}

// described returns the disk in a spec's words.
func (d *observedDisk) described(path string) machine.SeenDisk {
	return machine.SeenDisk{
		ID: d.id, Name: d.name, Mark: d.owner(), Path: path, Size: d.size, Format: d.format,
		Claims: []providers.Claim{diskNameClaim(d.name)}, Findings: d.findings(), FSType: d.fsType(),
	}
}

// fsType returns the file system that the guest makes on the disk; nil: it is not known.
func (d *observedDisk) fsType() *string {
	if d.mark == nil {
		return nil
	}
	return &d.mark.FSType
}

// findings returns the problems of a disk.
func (d *observedDisk) findings() []providers.Finding {
	var all []providers.Finding
	add := func(kind providers.FindingKind, action, evidence string) {
		f := providers.Finding{Kind: kind, Object: d.name, Evidence: []string{evidence}, Action: action, Claim: lockClaim(d.name)}
		if o := d.owner(); o != nil {
			f.Address = o.Address
		}
		all = append(all, f)
	}
	switch d.lock.verdict {
	case lockStale:
		add(providers.FindStaleLock, "released, unless on_stale_lock = \"refuse\"", d.lock.evidence)
	case lockHeld:
		add(providers.FindHeldLock, "left alone: its holder has to end first", d.lock.evidence)
	case lockFree, lockUsed:
	}
	return all
}
