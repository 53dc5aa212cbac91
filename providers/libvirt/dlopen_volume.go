//go:build cgo && libvirt_dlopen

package libvirt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"libvirt.org/go/libvirt"

	"vmctl/providers"
)

// lookup finds a volume in the last listing of its pool. If it is not there, it lists the pool
// anew.
func lookup(ctx context.Context, p *libvirt.StoragePool, name string) (*libvirt.StorageVol, error) {
	v, err := p.LookupStorageVolByName(name)
	if errors.Is(err, libvirt.ERR_NO_STORAGE_VOL) {
		if err := refresh(ctx, p); err != nil {
			return nil, err
		}
		return p.LookupStorageVolByName(name)
	}
	return v, err
}

// volumeIn asks about a volume.
func volumeIn[T any](ctx context.Context, c *conn, poolName, name string, f func(context.Context, *libvirt.StorageVol) (T, error)) (T, error) {
	return within(ctx, c, poolName, "read "+name, func(ctx context.Context, p *libvirt.StoragePool) (none T, err error) {
		v, err := lookup(ctx, p, name)
		if err != nil {
			return none, err
		}
		defer free(v)
		return f(ctx, v)
	})
}

// actOn changes a volume.
func (c *conn) actOn(ctx context.Context, poolName, name, doing string, f func(*libvirt.StorageVol) error) error {
	return c.manage(ctx, poolName, doing+" "+name, func(p *libvirt.StoragePool) error {
		v, err := lookup(ctx, p, name)
		if err != nil {
			return err
		}
		defer free(v)
		return f(v)
	})
}

func (c *conn) VolumeInfo(ctx context.Context, poolName, name string) (volume, error) {
	read := func(_ context.Context, v *libvirt.StorageVol) (volume, error) {
		text, err := v.GetXMLDesc(0)
		if err != nil {
			return volume{}, err
		}
		return parseVolume(text)
	}
	if v, listed := c.volume(poolName, name); listed {
		found, err := ask(ctx, c, "read "+name, func(ctx context.Context) (volume, error) { return read(ctx, v) })
		var late *lateError
		if err == nil || errors.As(err, &late) {
			return found, err
		}
	}
	found, err := volumeIn(ctx, c, poolName, name, read)
	if err == nil || errors.Is(err, errAbsent) {
		return found, err
	}
	// Its file may be gone: only a new listing shows that.
	if _, listed := c.Volumes(ctx, poolName); listed != nil {
		return volume{}, err
	}
	return volumeIn(ctx, c, poolName, name, read)
}

func (c *conn) Has(ctx context.Context, poolName, name string) (bool, error) {
	_, err := within(ctx, c, poolName, "look for "+name, func(_ context.Context, p *libvirt.StoragePool) (struct{}, error) {
		v, err := p.LookupStorageVolByName(name)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, v.Free()
	})
	if errors.Is(err, errAbsent) {
		return false, nil
	}
	return err == nil, err
}

func (c *conn) Upload(ctx context.Context, poolName string, u upload) error {
	return c.manage(ctx, poolName, "upload "+u.Name, func(p *libvirt.StoragePool) error {
		v, err := create(p, volume{Name: u.Name, Format: formatRaw, Capacity: u.Size})
		if err != nil {
			return err
		}
		defer free(v)
		if err = c.fill(ctx, v, u); err == nil {
			return nil
		}
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
		defer cancel()
		if left := remove(own, v); left != nil {
			return fmt.Errorf("%w (and half of it stays behind: %w)", plain(err), plain(left))
		}
		return err
	})
}

// create makes a volume.
func create(p *libvirt.StoragePool, v volume) (*libvirt.StorageVol, error) {
	text, err := v.document()
	if err != nil {
		return nil, err
	}
	return p.StorageVolCreateXML(text, 0)
}

func remove(ctx context.Context, v *libvirt.StorageVol) error {
	return settled(ctx, func() error { return v.Delete(libvirt.STORAGE_VOL_DELETE_NORMAL) })
}

func (c *conn) MakeVolume(ctx context.Context, poolName string, v volume) error {
	return c.manage(ctx, poolName, "make volume "+v.Name, func(p *libvirt.StoragePool) error {
		made, err := create(p, v)
		if err != nil {
			return err
		}
		return made.Free()
	})
}

func (c *conn) ResizeVolume(ctx context.Context, poolName, name string, size uint64) error {
	return c.actOn(ctx, poolName, name, "resize", func(v *libvirt.StorageVol) error {
		return settled(ctx, func() error { return v.Resize(size, 0) })
	})
}

func (c *conn) DeleteVolume(ctx context.Context, poolName, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return c.actOn(ctx, poolName, name, "delete", func(v *libvirt.StorageVol) error { return remove(ctx, v) })
}

func (c *conn) Overwrite(ctx context.Context, poolName, name string, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return c.actOn(ctx, poolName, name, "write", func(v *libvirt.StorageVol) error {
		return c.fill(ctx, v, upload{Name: name, Size: uint64(len(content)), Content: bytes.NewReader(content)})
	})
}

func (c *conn) fill(ctx context.Context, v *libvirt.StorageVol, u upload) error {
	s, err := c.c.NewStream(0)
	if err != nil {
		return err
	}
	defer free(s)
	if err := settled(ctx, func() error { return v.Upload(s, 0, u.Size, 0) }); err != nil { // another vmctl may be reading it
		return err
	}
	var read error
	err = s.SendAll(func(_ *libvirt.Stream, n int) ([]byte, error) {
		b := make([]byte, n)
		got, err := io.ReadFull(u.Content, b)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			read = err
			return nil, err
		}
		return b[:got], nil
	})
	if err == nil {
		return s.Finish()
	}
	abort(s)
	if read != nil {
		return read
	}
	return err
}

// abort ends a stream that failed. The caller reports that failure; a failure to abort adds
// nothing.
func abort(s *libvirt.Stream) {
	_ = s.Abort() //nolint:errcheck // see above
}

func (c *conn) Head(ctx context.Context, poolName, name string, limit uint64) ([]byte, error) {
	return volumeIn(ctx, c, poolName, name, func(_ context.Context, v *libvirt.StorageVol) ([]byte, error) {
		info, err := v.GetInfo()
		if err != nil {
			return nil, err
		}
		return c.download(v, 0, min(info.Capacity, limit))
	})
}

func (c *conn) Part(ctx context.Context, poolName, name string, from int64, most int) (text []byte, start int64, err error) {
	text, err = within(ctx, c, poolName, "read "+name, func(ctx context.Context, p *libvirt.StoragePool) ([]byte, error) {
		if err := refresh(ctx, p); err != nil { // the volume grows without the pool's knowledge
			return nil, err
		}
		v, err := p.LookupStorageVolByName(name)
		if err != nil {
			return nil, err
		}
		defer free(v)
		info, err := v.GetInfo()
		if err != nil {
			return nil, err
		}
		var length int64
		start, length = providers.PartOf(int64(info.Capacity), from, most) //nolint:gosec // no file is that large
		return c.download(v, uint64(start), uint64(length))                //nolint:gosec // neither is negative
	})
	return text, start, err
}

// download returns a part of a volume.
func (c *conn) download(v *libvirt.StorageVol, from, size uint64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	s, err := c.c.NewStream(0)
	if err != nil {
		return nil, err
	}
	defer free(s)
	if err := v.Download(s, from, size, 0); err != nil {
		return nil, err
	}
	var content []byte
	err = s.RecvAll(func(_ *libvirt.Stream, b []byte) (int, error) {
		content = append(content, b...)
		return len(b), nil
	})
	if err != nil {
		abort(s)
		return nil, err
	}
	return content, s.Finish()
}
