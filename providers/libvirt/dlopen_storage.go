//go:build cgo && libvirt_dlopen

package libvirt

import (
	"context"
	"errors"
	"strings"
	"time"

	"libvirt.org/go/libvirt"

	"vmctl/internal/clock"
)

// within asks about a pool.
func within[T any](ctx context.Context, c *conn, name, doing string, f func(context.Context, *libvirt.StoragePool) (T, error)) (T, error) {
	return ask(ctx, c, doing, func(ctx context.Context) (none T, err error) {
		p, err := c.c.LookupStoragePoolByName(name)
		if err != nil {
			return none, err
		}
		defer free(p)
		return f(ctx, p)
	})
}

// manage changes a pool.
func (c *conn) manage(ctx context.Context, name, doing string, f func(*libvirt.StoragePool) error) error {
	return change(ctx, c, doing, func() error {
		p, err := c.c.LookupStoragePoolByName(name)
		if err != nil {
			return err
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
// itself, also for a moment after an upload. It stops before the call ends: the connection stays
// usable, and the refusal is reported.
func settled(ctx context.Context, do func() error) error {
	if end, limited := ctx.Deadline(); limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-settleMargin))
		defer cancel()
	}
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

const (
	settleEvery  = 50 * time.Millisecond // the pause between two attempts
	settleMargin = time.Second           // between the last attempt and the end of the call
)

func (c *conn) Pool(ctx context.Context, name string) (pool, error) {
	return within(ctx, c, name, "read pool "+name, func(_ context.Context, p *libvirt.StoragePool) (pool, error) { return readPool(p) })
}

func (c *conn) Refresh(ctx context.Context, name string) (pool, error) {
	return within(ctx, c, name, "list pool "+name, func(ctx context.Context, p *libvirt.StoragePool) (pool, error) {
		if err := refresh(ctx, p); err != nil {
			return pool{}, err
		}
		return readPool(p)
	})
}

func readPool(p *libvirt.StoragePool) (pool, error) {
	active, err := p.IsActive()
	if err != nil {
		return pool{}, err
	}
	xml, err := p.GetXMLDesc(0)
	if err != nil {
		return pool{}, err
	}
	read, err := parsePool(xml)
	read.Active = active
	return read, err
}

func (c *conn) Pools(ctx context.Context) ([]pool, error) {
	return ask(ctx, c, "list pools", func(_ context.Context) ([]pool, error) {
		found, err := c.c.ListAllStoragePools(0)
		if err != nil {
			return nil, err
		}
		var all []pool
		for i := range found {
			active, err := found[i].IsActive()
			text := ""
			if err == nil {
				text, err = found[i].GetXMLDesc(0)
			}
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
			p.Active = active
			all = append(all, p)
		}
		return all, nil
	})
}

func (c *conn) DefinePool(ctx context.Context, xml string) error {
	return change(ctx, c, "define a pool", func() error {
		p, err := c.c.StoragePoolDefineXML(xml, 0)
		if err != nil {
			return err
		}
		defer free(p)
		return p.SetAutostart(true)
	})
}

func (c *conn) StartPool(ctx context.Context, name string) error {
	return c.manage(ctx, name, "start pool "+name, func(p *libvirt.StoragePool) error {
		if err := p.Build(libvirt.STORAGE_POOL_BUILD_NEW); err != nil {
			return err
		}
		return p.Create(0)
	})
}

func (c *conn) RemovePool(ctx context.Context, name string) error {
	return c.manage(ctx, name, "remove pool "+name, func(p *libvirt.StoragePool) error {
		if active, err := p.IsActive(); err != nil || active {
			if err = errors.Join(err, settled(ctx, p.Destroy)); err != nil {
				return err
			}
		}
		if err := p.Delete(libvirt.STORAGE_POOL_DELETE_NORMAL); err != nil {
			return err
		}
		return p.Undefine()
	})
}

func (c *conn) Volumes(ctx context.Context, poolName string) ([]string, error) {
	return within(ctx, c, poolName, "list the volumes of pool "+poolName, func(ctx context.Context, p *libvirt.StoragePool) ([]string, error) {
		if err := refresh(ctx, p); err != nil {
			return nil, err
		}
		all, err := p.ListAllStorageVolumes(0)
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range all {
			name, err := all[i].GetName()
			if err != nil {
				return nil, err
			}
			keep(c.handles, c.volumes, volumeKey{poolName, name}, &all[i])
			names = append(names, name)
		}
		return names, nil
	})
}
