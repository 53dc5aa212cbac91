package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"vmctl/internal/qcow2"
)

// readOnly is a connection that changes nothing. If a pool of vmctl's own is not active, it
// reads the pool's files from their folder. libvirt cannot list them unless it starts the
// pool, which is a change.
type readOnly struct {
	connection
	mu       sync.Mutex
	inactive []pool // pools whose folder this user can read
}

// readOnly returns a connection for Observe, which changes nothing.
func (p *Provider) readOnly(ctx context.Context, c connection) *readOnly {
	l := &readOnly{connection: c}
	for _, name := range p.candidatePools() {
		if found, err := c.Pool(ctx, name); err == nil && !found.Active {
			p.canRead(l, found)
		}
	}
	return l
}

// canRead reports whether an inactive pool is vmctl's own and its folder can be read.
func (p *Provider) canRead(l *readOnly, found pool) bool {
	if !p.ours(found) || !p.location.Here {
		return false
	}
	if _, known := l.of(found.Name); known {
		return true
	}
	if _, err := os.ReadDir(found.Path); err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inactive = append(l.inactive, found)
	return true
}

// of returns the inactive pool of that name.
func (l *readOnly) of(name string) (pool, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.inactive, func(p pool) bool { return p.Name == name })
	if i < 0 {
		return pool{}, false
	}
	return l.inactive[i], true
}

// Volumes lists the files of an inactive pool.
func (l *readOnly) Volumes(ctx context.Context, name string) ([]string, error) {
	in, ok := l.of(name)
	if !ok {
		return l.connection.Volumes(ctx, name)
	}
	entries, err := os.ReadDir(in.Path)
	if err != nil {
		return nil, fmt.Errorf("list the files of pool %s: %w", name, err)
	}
	var all []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			all = append(all, e.Name())
		}
	}
	return all, nil
}

// Pools shows the inactive pools whose folder can be read as if they were active.
func (l *readOnly) Pools(ctx context.Context) ([]pool, error) {
	all, err := l.connection.Pools(ctx)
	for i, found := range all {
		if _, known := l.of(found.Name); known {
			all[i].Active = true
		}
	}
	return all, err
}

// Head reads the first bytes of a file of an inactive pool.
func (l *readOnly) Head(ctx context.Context, name, volume string, limit uint64) ([]byte, error) {
	in, ok := l.of(name)
	if !ok {
		return l.connection.Head(ctx, name, volume, limit)
	}
	content, err := headOf(in.file(volume).path(), limit)
	return content, absentIfMissing(err)
}

// headOf returns the first bytes of a regular file.
func headOf(path string, limit uint64) ([]byte, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer closeQuietly(f)
	content := make([]byte, min(uint64(info.Size()), limit)) //nolint:gosec // no size is negative
	n, err := io.ReadFull(f, content)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // it was cut meanwhile
		err = nil
	}
	return content[:n], err
}

// VolumeInfo reads a file of an inactive pool as libvirt would.
func (l *readOnly) VolumeInfo(ctx context.Context, name, volumeName string) (volume, error) {
	in, ok := l.of(name)
	if !ok {
		return l.connection.VolumeInfo(ctx, name, volumeName)
	}
	return in.file(volumeName).read()
}

// read reads the properties of a file of this machine as libvirt would. A missing file is errAbsent.
func (f poolFile) read() (volume, error) {
	file, info, err := openRegular(f.path())
	if err != nil {
		return volume{}, absentIfMissing(err)
	}
	defer closeQuietly(file)
	v := volume{
		Name: f.name, Path: f.path(), Format: formatRaw, Capacity: uint64(info.Size()), Allocation: taken(info), Modified: timestamp(info),
	}
	h, err := qcow2.Read(file, info.Size())
	var other *qcow2.FormatError
	switch {
	case errors.As(err, &other): // bytes
	case err != nil:
		return volume{}, fmt.Errorf("read %s: %w", f.path(), err)
	default:
		v.Format, v.Capacity = formatQCOW2, h.VirtualSize
		if v.Backing = h.BackingFile; v.Backing != "" && !filepath.IsAbs(v.Backing) {
			v.Backing = filepath.Join(f.in.Path, v.Backing)
		}
	}
	return v, nil
}

// timestamp returns when a file was last written to, in libvirt's words
// (virStorageVolTimestampFormat in storage_conf.c).
func timestamp(info fs.FileInfo) string {
	modified := info.ModTime()
	return fmt.Sprintf("%d.%09d", modified.Unix(), modified.Nanosecond())
}

func absentIfMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errAbsent
	}
	return err
}
