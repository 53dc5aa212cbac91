//go:build cgo && libvirt_dlopen

package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"libvirt.org/go/libvirt"

	"vmctl/internal/clock"
)

// within runs f on a pool.
func within[T any](ctx context.Context, c *conn, name, doing string, f func(*libvirt.StoragePool) (T, error)) (T, error) {
	return call(ctx, c, doing, func() (T, error) {
		p, err := c.c.LookupStoragePoolByName(name)
		if err != nil {
			var none T
			return none, err
		}
		defer free(p)
		return f(p)
	})
}

// refresh lets libvirt list a pool anew.
func refresh(ctx context.Context, p *libvirt.StoragePool) error {
	return settled(ctx, func() error { return p.Refresh(0) })
}

// settled repeats an operation that libvirt refuses while it works on the pool or the volume
// itself, also for a moment after an upload.
func settled(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || !isBusy(err.Error()) {
			return err
		}
		if late := clock.Sleep(ctx, settleEvery); late != nil {
			return err
		}
	}
}

func isBusy(message string) bool {
	return strings.Contains(message, "has asynchronous jobs running") || strings.Contains(message, "is still in use") ||
		strings.Contains(message, "is still being allocated")
}

// settleEvery is the pause between two attempts.
const settleEvery = 50 * time.Millisecond

func (c *conn) Pool(ctx context.Context, name string) (pool, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return within(ctx, c, name, "read pool "+name, func(p *libvirt.StoragePool) (pool, error) {
		active, err := p.IsActive()
		if err != nil {
			return pool{}, err
		}
		if active { // the free space is as old as the last refresh
			if err := refresh(ctx, p); err != nil {
				return pool{}, err
			}
		}
		xml, err := p.GetXMLDesc(0)
		if err != nil {
			return pool{}, err
		}
		read, err := parsePool(xml)
		read.Active = active
		return read, err
	})
}

func (c *conn) DefinePool(ctx context.Context, xml string) error {
	_, err := call(ctx, c, "define a pool", func() (struct{}, error) {
		p, err := c.c.StoragePoolDefineXML(xml, 0)
		if err != nil {
			return struct{}{}, err
		}
		defer free(p)
		return struct{}{}, p.SetAutostart(true)
	})
	return err
}

func (c *conn) StartPool(ctx context.Context, name string) error {
	_, err := within(ctx, c, name, "start pool "+name, func(p *libvirt.StoragePool) (struct{}, error) {
		if err := p.Build(libvirt.STORAGE_POOL_BUILD_NEW); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, p.Create(0)
	})
	return err
}

func (c *conn) RemovePool(ctx context.Context, name string) error {
	_, err := within(ctx, c, name, "remove pool "+name, func(p *libvirt.StoragePool) (struct{}, error) {
		if active, err := p.IsActive(); err != nil || active {
			if err = errors.Join(err, settled(ctx, p.Destroy)); err != nil {
				return struct{}{}, err
			}
		}
		if err := p.Delete(libvirt.STORAGE_POOL_DELETE_NORMAL); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, p.Undefine()
	})
	return err
}

func (c *conn) Volumes(ctx context.Context, poolName string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return within(ctx, c, poolName, "list the volumes of pool "+poolName, func(p *libvirt.StoragePool) ([]string, error) {
		if err := refresh(ctx, p); err != nil {
			return nil, err
		}
		return p.ListStorageVolumes()
	})
}

func (c *conn) Upload(ctx context.Context, poolName string, u upload) error {
	_, err := within(ctx, c, poolName, "upload "+u.Name, func(p *libvirt.StoragePool) (struct{}, error) {
		v, err := create(p, volume{Name: u.Name, Format: formatRaw, Capacity: u.Size})
		if err != nil {
			return struct{}{}, err
		}
		defer free(v)
		if err = c.fill(ctx, v, u); err != nil {
			own, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
			defer cancel()
			if left := settled(own, func() error { return v.Delete(libvirt.STORAGE_VOL_DELETE_NORMAL) }); left != nil {
				err = fmt.Errorf("%w (and half of it stays behind: %w)", plain(err), plain(left))
			}
		}
		return struct{}{}, err
	})
	return err
}

// create makes a volume.
func create(p *libvirt.StoragePool, v volume) (*libvirt.StorageVol, error) {
	text, err := v.document()
	if err != nil {
		return nil, err
	}
	return p.StorageVolCreateXML(text, 0)
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

func (c *conn) DeleteVolume(ctx context.Context, poolName, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := within(ctx, c, poolName, "delete "+name, func(p *libvirt.StoragePool) (struct{}, error) {
		v, err := p.LookupStorageVolByName(name)
		if err != nil {
			return struct{}{}, err
		}
		defer free(v)
		return struct{}{}, settled(ctx, func() error { return v.Delete(libvirt.STORAGE_VOL_DELETE_NORMAL) })
	})
	return err
}
