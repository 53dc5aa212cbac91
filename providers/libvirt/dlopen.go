//go:build cgo && libvirt_dlopen

package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"libvirt.org/go/libvirt"

	"vmctl/providers"
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
		openLibrary()
		c, err := libvirt.NewConnect(uri)
		done <- result{c, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, plain(r.err)
		}
		return &conn{c: r.c, slots: make(chan struct{}, requestsInFlight), handles: newHandles()}, nil
	case <-ctx.Done():
		return nil, &lateError{doing: "connect to " + uri, err: context.Cause(ctx)}
	}
}

// requestsInFlight is the number of requests that a daemon accepts from one client at a time
// by default (max_client_requests).
const requestsInFlight = 5

// callLimit bounds every call that only asks.
const callLimit = 30 * time.Second

// ask is a call that only asks. The context of f ends with the call.
func ask[T any](ctx context.Context, c *conn, doing string, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return call(ctx, c, doing, func() (T, error) { return f(ctx) })
}

// change is a call that changes something, which may take longer.
func change(ctx context.Context, c *conn, doing string, f func() error) error {
	_, err := call(ctx, c, doing, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

type conn struct {
	c      *libvirt.Connect
	slots  chan struct{}
	broken atomic.Bool
	*handles
}

var _ connection = (*conn)(nil)

// call runs f with one of the connection's slots. A call that does not return in time keeps
// its slot for good: the connection becomes unusable.
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
	absent := []libvirt.ErrorNumber{libvirt.ERR_NO_DOMAIN, libvirt.ERR_NO_STORAGE_POOL, libvirt.ERR_NO_STORAGE_VOL, libvirt.ERR_NO_NETWORK}
	if slices.Contains(absent, e.Code) {
		return fmt.Errorf("%w: %s", errAbsent, e.Message)
	}
	return &libvirtError{Code: int(e.Code), Message: e.Message}
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
	c.release()
	_, err := c.c.Close()
	if err != nil {
		return plain(err)
	}
	return nil
}

func (c *conn) Facts(ctx context.Context) (facts, error) {
	return ask(ctx, c, "ask what the host can do", func(_ context.Context) (f facts, err error) {
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
		// A driver need not know its host's hardware. Memory is in KiB (virNodeInfo).
		if node, err := c.c.GetNodeInfo(); err == nil {
			f.Capacity = providers.Capacity{CPUs: uint64(node.Cpus), Memory: node.Memory << 10}
		}
		f.Capabilities, err = c.c.GetCapabilities()
		return f, err
	})
}

func dotted(v uint32) string { return fmt.Sprintf("%d.%d.%d", v/1000000, v/1000%1000, v%1000) }

// free releases a handle. A failure needs no reaction: the handle goes with the connection.
func free(h interface{ Free() error }) {
	_ = h.Free() //nolint:errcheck // see above
}
