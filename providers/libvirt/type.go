// Package libvirt makes virtual machines of QEMU through libvirt: domains on QEMU's user
// network that boot a kernel directly or from a disk, with their files in a storage pool, and
// libvirt's networks, which they have further cards in. The call that defines a domain or a network
// also marks it as vmctl's.
//
// All calls go through one libvirt connection, so that virsh and virt-manager see the same
// machines, and a remote host works like this one.
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
	"vmctl/providers/machine"
)

// TypeName is the type of this provider's blocks.
const TypeName = "libvirt"

// nameLimit is the length of the longest name of an object (bytes). File names have 255 bytes
// at most; the rest is for the ends of volume names.
const nameLimit = 200

// Host holds the provider's view of its process: user, environment and folders.
type Host struct {
	UID    int
	Getenv func(string) string
	Proc   string // the proc file system; "" is /proc
	Cache  string // the folder for downloads; made on first use

	downloads *fetch.Cache
}

// Downloads returns the downloads in a folder that is the Cache of a Host.
func Downloads(cache string) *fetch.Cache {
	return &fetch.Cache{Dir: filepath.Join(cache, "download"), Owner: lockfile.Owner{PID: os.Getpid(), Command: "vmctl"}}
}

// Type returns the provider type. It is the same whether or not this build has
// libvirt: opening connects to nothing.
func Type(h Host) providers.Type {
	if h.Proc == "" {
		h.Proc = "/proc"
	}
	common := &common{}
	h.downloads = Downloads(h.Cache)
	return providers.Type{
		Name:  TypeName,
		Kinds: kinds,
		Check: check,

		Produces:  machine.Produces(),
		NameLimit: nameLimit,
		// A connection has the same domains whatever pool new files go to.
		System: func(_ string, attrs cty.Value) cty.Value {
			return cty.ObjectVal(map[string]cty.Value{"uri": attrs.GetAttr("uri")})
		},
		Resolve: func(attrs cty.Value) cty.Value { return resolve(attrs, h.UID) },
		Rekey: func(running bool) providers.Verdict {
			return machine.AtStart(keysAtBoot)(cty.NilVal, cty.NilVal, running)
		},
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
	location location
	pool     string // the pool that the block names; "": vmctl chooses
	dial     func(ctx context.Context, uri string) (connection, error)
	sleep    func(ctx context.Context, d time.Duration) error

	patience time.Duration // the time for an attempt to connect

	common  *common
	storage chan struct{} // is full while pools and volumes are changed
	// lastListed holds the pools as the last step on a disk left them, for the next one; nil: it lists
	// them anew. It belongs to the step that fills storage.
	lastListed []filePool

	mu   sync.Mutex
	conn connection
}

var _ providers.Provider = (*Provider)(nil)

// common holds the locks that the providers of one process share.
type common struct {
	library sync.Mutex // held while the library is looked up
	keys    sync.Mutex // held while keys are written; a lock file keeps other processes away
}

func open(h Host, s providers.Settings, c *common) (*Provider, error) {
	at, err := parseURI(ctyread.Text(s.Attrs, "uri"), h.UID)
	if err != nil {
		return nil, fmt.Errorf("provider.%s.%s: %w", TypeName, s.Name, err)
	}
	return &Provider{
		host: h, settings: s, location: at, pool: ctyread.Text(s.Attrs, "pool"),
		dial: dial, sleep: clock.Sleep, patience: connectLimit, common: c, storage: make(chan struct{}, 1),
	}, nil
}

// connectLimit limits an attempt to connect: libvirt itself would wait for ever.
const connectLimit = 20 * time.Second

func (p *Provider) connect(ctx context.Context) (connection, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil && p.conn.Alive() {
		return p.conn, nil
	}
	p.conn = nil // a dead connection is not closed: other steps may be using it
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	p.common.library.Lock()
	defer p.common.library.Unlock()
	c, err := p.dial(ctx, p.location.URI)
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
