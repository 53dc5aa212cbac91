//go:build cgo && libvirt_dlopen

package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"libvirt.org/go/libvirt"
)

// dial connects to uri. It must not run twice at once in one process: the
// library is looked up without a lock.
func dial(ctx context.Context, uri string) (connection, error) {
	type result struct {
		c   *libvirt.Connect
		err error
	}
	done := make(chan result, 1)
	go func() {
		c, err := libvirt.NewConnect(uri)
		done <- result{c, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, plain(r.err)
		}
		return &conn{c: r.c, slots: make(chan struct{}, requestsInFlight)}, nil
	case <-ctx.Done():
		return nil, &lateError{doing: "connect to " + uri, err: context.Cause(ctx)}
	}
}

// requestsInFlight is what a daemon accepts of one client by default
// (max_client_requests).
const requestsInFlight = 5

// callLimit bounds every call that only asks.
const callLimit = 30 * time.Second

type conn struct {
	c      *libvirt.Connect
	slots  chan struct{}
	broken atomic.Bool
}

var _ connection = (*conn)(nil)

// call runs f with one of the connection's slots. A call that is not back in
// time makes the connection unusable: its slot is never given back.
func call[T any](ctx context.Context, c *conn, doing string, f func() (T, error)) (T, error) {
	var none T
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return none, &lateError{doing: doing, err: context.Cause(ctx)}
	}
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		if loadedByTwo(err) {
			v, err = f()
		}
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		<-c.slots
		if r.err != nil {
			return none, plain(r.err)
		}
		return r.v, nil
	case <-ctx.Done():
		c.broken.Store(true)
		return none, &lateError{doing: doing, err: context.Cause(ctx)}
	}
}

// loadedByTwo reports an error that the library's loader invents when two
// threads look a function up for the first time at once. Asking again helps.
func loadedByTwo(err error) bool {
	var e libvirt.Error
	return errors.As(err, &e) && e.Code == libvirt.ERR_INTERNAL_ERROR && strings.HasPrefix(e.Message, "Failed to load ")
}

func plain(err error) error {
	var e libvirt.Error
	var already *libvirtError
	if errors.As(err, &already) || !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case libvirt.ERR_NO_DOMAIN, libvirt.ERR_NO_STORAGE_POOL, libvirt.ERR_NO_STORAGE_VOL:
		return fmt.Errorf("%w: %s", errAbsent, e.Message)
	default:
		return &libvirtError{Code: int(e.Code), Message: e.Message}
	}
}

func (c *conn) Alive() bool {
	if c.broken.Load() {
		return false
	}
	alive, err := c.c.IsAlive()
	return err == nil && alive
}

// Close leaves a connection that hangs to the end of the process.
func (c *conn) Close() error {
	if c.broken.Load() {
		return nil
	}
	_, err := c.c.Close()
	if err != nil {
		return plain(err)
	}
	return nil
}

func (c *conn) Facts(ctx context.Context) (facts, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return call(ctx, c, "ask what the host can do", func() (f facts, err error) {
		if f.URI, err = c.c.GetURI(); err != nil {
			return f, err
		}
		daemon, err := c.c.GetLibVersion()
		if err != nil {
			return f, err
		}
		f.Libvirt = dotted(daemon)
		// A driver that finds no emulator has no version.
		if hypervisor, err := c.c.GetVersion(); err == nil {
			f.Hypervisor = dotted(hypervisor)
		}
		f.Capabilities, err = c.c.GetCapabilities()
		return f, err
	})
}

func dotted(v uint32) string { return fmt.Sprintf("%d.%d.%d", v/1000000, v/1000%1000, v%1000) }

// Domains lists all in one call: between two calls for those that run and those
// that do not, one that starts or stops would be in neither.
func (c *conn) Domains(ctx context.Context) ([]domainRef, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	all, err := c.list(ctx, 0)
	if err != nil {
		return nil, err
	}
	transient, err := c.list(ctx, libvirt.CONNECT_LIST_DOMAINS_TRANSIENT)
	if err != nil {
		return nil, err
	}
	for i, ref := range all {
		all[i].Transient = slices.Contains(transient, ref)
	}
	return all, nil
}

func (c *conn) list(ctx context.Context, flags libvirt.ConnectListAllDomainsFlags) ([]domainRef, error) {
	return call(ctx, c, "list domains", func() ([]domainRef, error) {
		domains, err := c.c.ListAllDomains(flags)
		if err != nil {
			return nil, err
		}
		var refs []domainRef
		for i := range domains {
			ref, err := refOf(&domains[i])
			if err != nil {
				return nil, err
			}
			refs = append(refs, ref)
			free(&domains[i])
		}
		return refs, nil
	})
}

func refOf(d *libvirt.Domain) (ref domainRef, err error) {
	if ref.Name, err = d.GetName(); err != nil {
		return ref, err
	}
	ref.UUID, err = d.GetUUIDString()
	return ref, err
}

func (c *conn) Domain(ctx context.Context, uuid string) (domainRef, error) {
	return c.lookup(ctx, func() (*libvirt.Domain, error) { return c.c.LookupDomainByUUIDString(uuid) })
}

func (c *conn) DomainNamed(ctx context.Context, name string) (domainRef, error) {
	return c.lookup(ctx, func() (*libvirt.Domain, error) { return c.c.LookupDomainByName(name) })
}

func (c *conn) lookup(ctx context.Context, find func() (*libvirt.Domain, error)) (domainRef, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return call(ctx, c, "look up a domain", func() (ref domainRef, err error) {
		d, err := find()
		if err != nil {
			return ref, err
		}
		defer free(d)
		if ref, err = refOf(d); err != nil {
			return ref, err
		}
		persistent, err := d.IsPersistent()
		ref.Transient = !persistent
		return ref, err
	})
}

// free gives a handle back. There is nothing to do about a failure: the handle
// goes with the connection.
func free(h interface{ Free() error }) {
	_ = h.Free() //nolint:errcheck // see above
}

// on runs f on a domain.
func on[T any](ctx context.Context, c *conn, uuid, doing string, f func(*libvirt.Domain) (T, error)) (T, error) {
	return call(ctx, c, doing, func() (T, error) {
		d, err := c.c.LookupDomainByUUIDString(uuid)
		if err != nil {
			var none T
			return none, err
		}
		defer free(d)
		return f(d)
	})
}

func (c *conn) act(ctx context.Context, uuid, doing string, f func(*libvirt.Domain) error) error {
	_, err := on(ctx, c, uuid, doing, func(d *libvirt.Domain) (struct{}, error) { return struct{}{}, f(d) })
	return err
}

func (c *conn) XML(ctx context.Context, uuid string, of version) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var flags libvirt.DomainXMLFlags
	if of == asConfigured {
		flags = libvirt.DOMAIN_XML_INACTIVE
	}
	return on(ctx, c, uuid, "read a domain", func(d *libvirt.Domain) (string, error) { return d.GetXMLDesc(flags) })
}

func (c *conn) Power(ctx context.Context, uuid string) (power, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return on(ctx, c, uuid, "read a domain's run state", func(d *libvirt.Domain) (power, error) {
		state, reason, err := d.GetState()
		if err != nil {
			return power{}, err
		}
		return powerOf(int(state), reason), nil
	})
}

func (c *conn) Define(ctx context.Context, xml string) error {
	_, err := call(ctx, c, "define a domain", func() (struct{}, error) {
		d, err := c.c.DomainDefineXML(xml)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, d.Free()
	})
	return err
}

func (c *conn) HasSavedMemory(ctx context.Context, uuid string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return on(ctx, c, uuid, "look for saved memory", func(d *libvirt.Domain) (bool, error) { return d.HasManagedSaveImage(0) })
}

func (c *conn) Undefine(ctx context.Context, uuid string) error {
	const all = libvirt.DOMAIN_UNDEFINE_MANAGED_SAVE | libvirt.DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
	const newer = libvirt.DOMAIN_UNDEFINE_CHECKPOINTS_METADATA | libvirt.DOMAIN_UNDEFINE_NVRAM
	return c.act(ctx, uuid, "undefine a domain", func(d *libvirt.Domain) error {
		err := d.UndefineFlags(all | newer)
		if errors.Is(err, libvirt.ERR_INVALID_ARG) { // a daemon that does not know the newer flags keeps nothing for them
			return d.UndefineFlags(all)
		}
		return err
	})
}

func (c *conn) Start(ctx context.Context, uuid string) error {
	return c.act(ctx, uuid, "start a domain", (*libvirt.Domain).Create)
}

func (c *conn) Resume(ctx context.Context, uuid string) error {
	return c.act(ctx, uuid, "resume a domain", (*libvirt.Domain).Resume)
}

func (c *conn) Shutdown(ctx context.Context, uuid string) error {
	return c.act(ctx, uuid, "ask a domain to shut down", (*libvirt.Domain).Shutdown)
}

func (c *conn) Destroy(ctx context.Context, uuid string) error {
	return c.act(ctx, uuid, "force a domain off", (*libvirt.Domain).Destroy)
}

func (c *conn) Monitor(ctx context.Context, uuid, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return on(ctx, c, uuid, "ask QEMU's monitor", func(d *libvirt.Domain) (string, error) {
		return d.QemuMonitorCommand(command, libvirt.DOMAIN_QEMU_MONITOR_COMMAND_HMP)
	})
}

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

func (c *conn) Pool(ctx context.Context, name string) (pool, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return within(ctx, c, name, "read pool "+name, func(p *libvirt.StoragePool) (pool, error) {
		active, err := p.IsActive()
		if err != nil {
			return pool{}, err
		}
		if active { // what is free is as old as the last refresh
			if err := p.Refresh(0); err != nil {
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
		return struct{}{}, p.Free()
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
			if err = errors.Join(err, p.Destroy()); err != nil {
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
		if err := p.Refresh(0); err != nil {
			return nil, err
		}
		return p.ListStorageVolumes()
	})
}

func (c *conn) Upload(ctx context.Context, poolName string, u upload) (string, error) {
	return within(ctx, c, poolName, "upload "+u.Name, func(p *libvirt.StoragePool) (string, error) {
		v, err := p.StorageVolCreateXML(volumeXML(u), 0)
		if err != nil {
			return "", err
		}
		defer free(v)
		if err := c.fill(v, u); err != nil {
			if left := v.Delete(libvirt.STORAGE_VOL_DELETE_NORMAL); left != nil {
				return "", fmt.Errorf("%w (and half of it stays behind: %s)", plain(err), plain(left))
			}
			return "", plain(err)
		}
		return v.GetPath()
	})
}

func (c *conn) fill(v *libvirt.StorageVol, u upload) error {
	s, err := c.c.NewStream(0)
	if err != nil {
		return err
	}
	defer free(s)
	if err := v.Upload(s, 0, u.Size, 0); err != nil {
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

// abort ends a stream that failed. What it failed with is reported; a failure
// to end it says nothing more.
func abort(s *libvirt.Stream) {
	_ = s.Abort() //nolint:errcheck // see above
}

func (c *conn) Tail(ctx context.Context, poolName, name string, limit uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return within(ctx, c, poolName, "read "+name, func(p *libvirt.StoragePool) ([]byte, error) {
		if err := p.Refresh(0); err != nil {
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
		size := min(info.Capacity, limit)
		if size == 0 {
			return nil, nil
		}
		s, err := c.c.NewStream(0)
		if err != nil {
			return nil, err
		}
		defer free(s)
		if err := v.Download(s, info.Capacity-size, size, 0); err != nil {
			return nil, err
		}
		var text []byte
		err = s.RecvAll(func(_ *libvirt.Stream, b []byte) (int, error) {
			text = append(text, b...)
			return len(b), nil
		})
		if err != nil {
			abort(s)
			return nil, err
		}
		return text, s.Finish()
	})
}

func (c *conn) DeleteVolume(ctx context.Context, poolName, name string) error {
	_, err := within(ctx, c, poolName, "delete "+name, func(p *libvirt.StoragePool) (struct{}, error) {
		v, err := p.LookupStorageVolByName(name)
		if err != nil {
			return struct{}{}, err
		}
		defer free(v)
		return struct{}{}, v.Delete(libvirt.STORAGE_VOL_DELETE_NORMAL)
	})
	return err
}
