//go:build cgo && libvirt_dlopen

package libvirt

import (
	"bytes"
	"context"
	"errors"

	"libvirt.org/go/libvirt"
)

// volumeIn runs f on a volume of the last listing of its pool. If the volume is not there, it
// lists the pool anew.
func volumeIn[T any](ctx context.Context, c *conn, poolName, name, doing string, f func(*libvirt.StorageVol) (T, error)) (T, error) {
	return within(ctx, c, poolName, doing+" "+name, func(p *libvirt.StoragePool) (T, error) {
		v, err := p.LookupStorageVolByName(name)
		if errors.Is(err, libvirt.ERR_NO_STORAGE_VOL) {
			if err := refresh(ctx, p); err != nil {
				var none T
				return none, err
			}
			v, err = p.LookupStorageVolByName(name)
		}
		if err != nil {
			var none T
			return none, err
		}
		defer free(v)
		return f(v)
	})
}

func (c *conn) VolumeInfo(ctx context.Context, poolName, name string) (volume, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	read := func(v *libvirt.StorageVol) (volume, error) {
		text, err := v.GetXMLDesc(0)
		if err != nil {
			return volume{}, err
		}
		return parseVolume(text)
	}
	found, err := volumeIn(ctx, c, poolName, name, "read", read)
	if err == nil || errors.Is(err, errAbsent) {
		return found, err
	}
	// Its file may be gone: only a new listing shows that.
	if _, listed := c.Volumes(ctx, poolName); listed != nil {
		return volume{}, err
	}
	return volumeIn(ctx, c, poolName, name, "read", read)
}

func (c *conn) MakeVolume(ctx context.Context, poolName string, v volume) error {
	_, err := within(ctx, c, poolName, "make volume "+v.Name, func(p *libvirt.StoragePool) (struct{}, error) {
		made, err := create(p, v)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, made.Free()
	})
	return err
}

func (c *conn) ResizeVolume(ctx context.Context, poolName, name string, size uint64) error {
	_, err := volumeIn(ctx, c, poolName, name, "resize", func(v *libvirt.StorageVol) (struct{}, error) {
		return struct{}{}, settled(ctx, func() error { return v.Resize(size, 0) })
	})
	return err
}

func (c *conn) Head(ctx context.Context, poolName, name string, limit uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return volumeIn(ctx, c, poolName, name, "read", func(v *libvirt.StorageVol) ([]byte, error) {
		info, err := v.GetInfo()
		if err != nil {
			return nil, err
		}
		return c.download(v, 0, min(info.Capacity, limit))
	})
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

func (c *conn) Overwrite(ctx context.Context, poolName, name string, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := volumeIn(ctx, c, poolName, name, "write", func(v *libvirt.StorageVol) (struct{}, error) {
		return struct{}{}, c.fill(ctx, v, upload{Name: name, Size: uint64(len(content)), Content: bytes.NewReader(content)})
	})
	return err
}

func (c *conn) Pools(ctx context.Context) ([]pool, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return call(ctx, c, "list pools", func() ([]pool, error) {
		found, err := c.c.ListAllStoragePools(libvirt.CONNECT_LIST_STORAGE_POOLS_ACTIVE)
		if err != nil {
			return nil, err
		}
		var all []pool
		for i := range found {
			text, err := found[i].GetXMLDesc(0)
			free(&found[i])
			if errors.Is(err, libvirt.ERR_NO_STORAGE_POOL) { // the pool was removed during the listing
				continue
			}
			if err != nil {
				return nil, err
			}
			p, err := parsePool(text)
			if err != nil {
				return nil, err
			}
			p.Active = true
			all = append(all, p)
		}
		return all, nil
	})
}

func (c *conn) ChangeMedia(ctx context.Context, uuid, xml string) error {
	const now = libvirt.DOMAIN_DEVICE_MODIFY_LIVE | libvirt.DOMAIN_DEVICE_MODIFY_FORCE
	return c.act(ctx, uuid, "change a CD-ROM", func(d *libvirt.Domain) error { return d.UpdateDeviceFlags(xml, now) })
}

func (c *conn) AttachDisk(ctx context.Context, uuid, xml string) error {
	const now = libvirt.DOMAIN_DEVICE_MODIFY_LIVE | libvirt.DOMAIN_DEVICE_MODIFY_CONFIG
	return c.act(ctx, uuid, "attach a disk", func(d *libvirt.Domain) error { return d.AttachDeviceFlags(xml, now) })
}

func (c *conn) ResizeDisk(ctx context.Context, uuid, path string, size uint64) error {
	return c.act(ctx, uuid, "resize a disk", func(d *libvirt.Domain) error {
		return d.BlockResize(path, size, libvirt.DOMAIN_BLOCK_RESIZE_BYTES)
	})
}
