// Package lima makes virtual machines of Lima: instances and additional disks in a Lima home, each
// instance run by a host agent and a driver, QEMU. It reads the home's files by itself and writes
// nothing while it observes. Lima's own code runs in another program, vmctl-lima, one process for
// each act; this package imports none of it.
package lima

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/clock"
	"vmctl/internal/ctyread"
	"vmctl/internal/process"
	"vmctl/internal/wsl"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// TypeName is the type of this provider's blocks.
const TypeName = "lima"

// Host holds the provider's view of its process and its machine.
type Host struct {
	// Program is vmctl-lima, an absolute path. "": there is none, and nothing can be made or
	// started.
	Program string
	// Version returns the version of Lima in Program. nil: it is read from the file.
	Version func(program string) (string, error)
	Getenv  func(string) string
	UID     int
	// User returns the name of the user of this host. nil: the system is asked.
	User func() (string, error)
	Home string // the user's home directory, for "~/" in a spec
	// WSL gives access to the distributions of Windows Subsystem for Linux. The zero one: this machine
	// has none.
	WSL wsl.Host
	// KVM is the device of Linux's hypervisor: if it cannot be opened, QEMU emulates the CPUs. "": this is
	// another system.
	KVM string
	// Sleep waits, as clock.Sleep does, which it is if it is nil.
	Sleep func(context.Context, time.Duration) error
}

// Type returns the provider type.
func Type(h Host) providers.Type {
	shared, templates := new(homes), &expander{provider: &Provider{host: h}}
	return providers.Type{
		Name:   TypeName,
		Kinds:  kinds,
		Check:  func(kind spec.Kind, want cty.Value) []spec.Flaw { return check(kind, want, h.vmTypes()) },
		Expand: templates.expand,

		Elsewhere: elsewhere,

		Produces:  machine.Produces(),
		NameLimit: nameLimit,
		// A home has the same instances whatever its block is called.
		System: func(name string, attrs cty.Value) cty.Value {
			if home := ctyread.Text(attrs, "home"); home != "" { // recorded ones may be as they were written
				return cty.ObjectVal(map[string]cty.Value{"home": cty.StringVal(filepath.Clean(home))})
			}
			return cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(name)})
		},
		ForwardsToLoopback: true,
		Rekey: func(running bool) providers.Verdict {
			return machine.AtStart(keysAtBoot)(cty.NilVal, cty.NilVal, running)
		},
		Resolve: func(attrs cty.Value) cty.Value { return resolve(attrs, h.Home) },
		Open: func(_ context.Context, s providers.Settings) (providers.Provider, error) {
			return open(h, s, shared)
		},
	}
}

// resolve returns the settings with home as the shortest path of the same folder, and with "~/" at its beginning replaced:
// however it is written, it leads to the same instances.
func resolve(attrs cty.Value, userHome string) cty.Value {
	home := ctyread.Text(attrs, "home")
	if home == "" {
		return attrs
	}
	if rest, short := strings.CutPrefix(home, "~/"); short && userHome != "" {
		home = filepath.Join(userHome, rest)
	}
	all := attrs.AsValueMap()
	all["home"] = cty.StringVal(filepath.Clean(home))
	return cty.ObjectVal(all)
}

// Provider is one Lima home.
type Provider struct {
	host      Host
	settings  providers.Settings
	home      string // the folder of the instances
	processes process.Host
	cpus      uint64        // of this machine
	memory    uint64        // of this machine, bytes; 0: not known
	version   func() string // of Lima in host.Program; "": it cannot be read

	socketHome string // the longest path of the home that Lima may use for sockets: links in it may be resolved
	locks      *homeLocks

	diskIDs atomic.Pointer[map[string]providers.ID] // of the disks of the last Observe, by name
}

var _ providers.Provider = (*Provider)(nil)

func open(h Host, s providers.Settings, shared *homes) (*Provider, error) {
	if h.Sleep == nil {
		h.Sleep = clock.Sleep
	}
	p := &Provider{host: h, settings: s, home: s.Dir, cpus: uint64(runtime.NumCPU()), memory: hostMemory(), version: sync.OnceValue(func() string { return h.version() })}
	if home := ctyread.Text(s.Attrs, "home"); home != "" {
		p.home = filepath.Clean(home)
		if !filepath.IsAbs(home) {
			p.home = filepath.Join(s.Files, home)
		}
	}
	if !filepath.IsAbs(p.home) {
		return nil, fmt.Errorf("provider.%s.%s: its home %q is not absolute", TypeName, s.Name, p.home)
	}
	p.socketHome = p.home
	if resolved := resolveExisting(p.home); len(resolved) > len(p.home) {
		p.socketHome = resolved
	}
	p.locks = shared.of(resolveExisting(p.home))
	return p, nil
}

// Close does nothing: the instances run on.
func (p *Provider) Close() error { return nil }

// checkSocketPaths fails if an instance of that name could not have its sockets: the longest of them is the one
// that ssh makes for a shared connection. Lima refuses such a name, too.
func (p *Provider) checkSocketPaths(name string) error {
	longest := filepath.Join(p.socketHome, name, "ssh.sock.1234567890123456")
	if len(longest) <= socketLimit() {
		return nil
	}
	return fmt.Errorf("the socket %s would have a path of %d bytes, and the system allows %d: choose a shorter name, "+
		"a shorter home in the provider block, or a shorter data directory (--data-dir=DIR)", longest, len(longest), socketLimit())
}

// resolveExisting resolves the links in a path, also if only its first folders exist.
func resolveExisting(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolveExisting(parent), filepath.Base(path))
}

// socketLimit returns the length of the longest path of a unix socket: sun_path of unix(7) holds 108
// bytes, the last of them zero; 104 on macOS.
func socketLimit() int {
	if runtime.GOOS == "darwin" {
		return 103
	}
	return 107
}

// hostMemory returns the memory of this machine in bytes, 0 where it cannot be read.
func hostMemory() uint64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	var kib uint64
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err != nil {
		return 0
	}
	return kib << 10
}

// nameLimit is the length of the longest name of an instance (bytes). The paths of its sockets
// allow less in most homes.
const nameLimit = 64

var (
	_ providers.Reacher = (*Provider)(nil)
	_ providers.Host    = (*Provider)(nil)
)

var _ providers.ConsoleReader = (*Provider)(nil)

// nameClaim returns the claim on the name of an instance.
func nameClaim(name string) providers.Claim {
	return providers.Claim{Kind: providers.ClaimName, Key: name}
}

// diskNameClaim returns the claim on the name of a disk, which has a folder of that name.
func diskNameClaim(name string) providers.Claim {
	return providers.Claim{Kind: "disk name", Key: name}
}

// lockClaim returns the claim on the lock of a disk.
func lockClaim(name string) providers.Claim {
	return providers.Claim{Kind: "disk lock", Key: name}
}
