// Package libvirt makes virtual machines of QEMU through libvirt: domains that
// boot a kernel directly, on QEMU's user network, with their files in a storage
// pool, marked as vmctl's in the call that defines them.
//
// Everything goes through one libvirt connection, so that virsh and
// virt-manager see the same machines and a remote host works like this one.
package libvirt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/clock"
	"vmctl/internal/ctyread"
	"vmctl/internal/fetch"
	"vmctl/internal/lockfile"
	"vmctl/providers"
)

// TypeName is the type of this provider's blocks.
const TypeName = "libvirt"

// nameLimit leaves room in the name of a file, which has 255 bytes at most, for what
// the names of volumes have behind their object's.
const nameLimit = 200

// Host is what the provider takes from the process that it runs in.
type Host struct {
	UID    int
	Getenv func(string) string
	Proc   string // the proc file system; "" is /proc
	Cache  string // the folder for what was downloaded; made on first use

	downloads *fetch.Cache
}

// Type returns the provider type. It is the same whether or not this build has
// libvirt: opening connects to nothing.
func Type(h Host) providers.Type {
	if h.Proc == "" {
		h.Proc = "/proc"
	}
	common := &common{}
	h.downloads = &fetch.Cache{
		Dir: filepath.Join(h.Cache, "download"), Owner: lockfile.Owner{PID: os.Getpid(), Command: "vmctl"},
	}
	return providers.Type{
		Name:  TypeName,
		Kinds: kinds,
		Check: check,

		NameLimit: nameLimit,
		// The domains of a connection are the same ones whatever pool new files go to.
		System: func(_ string, attrs cty.Value) cty.Value {
			return cty.ObjectVal(map[string]cty.Value{"uri": attrs.GetAttr("uri")})
		},
		Resolve: func(attrs cty.Value) cty.Value { return resolve(attrs, h.UID) },
		Open: func(_ context.Context, s providers.Settings) (providers.Provider, error) {
			return open(h, s, common)
		},
	}
}

// Provider is one libvirt connection. It connects when it is first needed, and
// again when the connection was lost.
type Provider struct {
	host     Host
	settings providers.Settings
	place    place
	pool     string // chosen by the block; "": by vmctl
	dial     func(ctx context.Context, uri string) (connection, error)
	sleep    func(ctx context.Context, d time.Duration) error

	patience time.Duration // for an attempt to connect

	common  *common
	storage sync.Mutex // one at a time changes pools and volumes

	mu   sync.Mutex
	conn connection
}

var _ providers.Provider = (*Provider)(nil)

// common is what the providers of one process take turns at.
type common struct {
	library sync.Mutex // to look it up
	keys    sync.Mutex // to write them: the lock of their files keeps processes apart
}

func open(h Host, s providers.Settings, c *common) (*Provider, error) {
	at, err := parseURI(ctyread.Text(s.Attrs, "uri"), h.UID)
	if err != nil {
		return nil, fmt.Errorf("provider.%s.%s: %w", TypeName, s.Name, err)
	}
	return &Provider{
		host: h, settings: s, place: at, pool: ctyread.Text(s.Attrs, "pool"),
		dial: dial, sleep: clock.Sleep, patience: connectLimit, common: c,
	}, nil
}

// connectLimit bounds an attempt to connect: libvirt itself would wait for ever.
const connectLimit = 20 * time.Second

func (p *Provider) connect(ctx context.Context) (connection, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil && p.conn.Alive() {
		return p.conn, nil
	}
	if p.conn != nil {
		// What is left of a broken connection: the new one's error counts.
		_ = p.conn.Close() //nolint:errcheck // see above
		p.conn = nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	p.common.library.Lock()
	defer p.common.library.Unlock()
	c, err := p.dial(ctx, p.place.URI)
	if err != nil {
		return nil, p.noConnection(err)
	}
	p.conn = c
	return c, nil
}

// Close ends the connection.
func (p *Provider) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		return nil
	}
	c := p.conn
	p.conn = nil
	return c.Close()
}
