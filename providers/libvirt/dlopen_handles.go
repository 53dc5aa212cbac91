//go:build cgo && libvirt_dlopen

package libvirt

import (
	"sync"

	"libvirt.org/go/libvirt"
)

// handles keeps the handles of domains and volumes that a connection has found, so that each is
// looked up once. A handle is no more than a name or a UUID: libvirt finds the object again at
// each call, and reports one that is gone.
type handles struct {
	mu      sync.Mutex
	domains map[string]*libvirt.Domain // by UUID
	volumes map[volumeKey]*libvirt.StorageVol
}

type volumeKey struct{ pool, name string }

func newHandles() *handles {
	return &handles{domains: map[string]*libvirt.Domain{}, volumes: map[volumeKey]*libvirt.StorageVol{}}
}

// domain returns the handle of a domain, which find looks up if there is none.
func (h *handles) domain(uuid string, find func(uuid string) (*libvirt.Domain, error)) (*libvirt.Domain, error) {
	h.mu.Lock()
	d, known := h.domains[uuid]
	h.mu.Unlock()
	if known {
		return d, nil
	}
	d, err := find(uuid)
	if err != nil {
		return nil, err
	}
	return keep(h, h.domains, uuid, d), nil
}

// volume returns the handle of a volume of a listed pool.
func (h *handles) volume(pool, name string) (*libvirt.StorageVol, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, known := h.volumes[volumeKey{pool, name}]
	return v, known
}

// keep keeps a handle and returns it, or frees it and returns the one that is known: a call may be
// using that.
func keep[K comparable, H interface{ Free() error }](h *handles, all map[K]H, key K, handle H) H {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before, known := all[key]; known {
		free(handle)
		return before
	}
	all[key] = handle
	return handle
}

// release frees all handles.
func (h *handles) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.domains {
		free(d)
	}
	for _, v := range h.volumes {
		free(v)
	}
	clear(h.domains)
	clear(h.volumes)
}
