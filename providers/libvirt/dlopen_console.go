//go:build cgo && libvirt_dlopen

package libvirt

import (
	"context"

	"libvirt.org/go/libvirt"

	"vmctl/providers"
)

func (c *conn) Part(ctx context.Context, poolName, name string, from int64, most int) (text []byte, start int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	text, err = within(ctx, c, poolName, "read "+name, func(p *libvirt.StoragePool) ([]byte, error) {
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
