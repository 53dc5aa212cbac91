package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"vmctl/providers"
)

// connection is one libvirt connection in this package's own words. Every call ends when its
// context does; a call that libvirt cannot stop goes on alone, and its result is lost. A
// missing object is errAbsent.
type connection interface {
	Facts(ctx context.Context) (facts, error)
	Alive() bool
	Close() error

	Domains(ctx context.Context) ([]domainRef, error)
	Domain(ctx context.Context, uuid string) (domainRef, error)
	DomainNamed(ctx context.Context, name string) (domainRef, error)
	XML(ctx context.Context, uuid string, of version) (string, error)
	Power(ctx context.Context, uuid string) (power, error)
	// Ran returns the processor time that a running domain has used.
	Ran(ctx context.Context, uuid string) (time.Duration, error)
	// Job names the long operation of a running domain, for example a backup; "": none.
	Job(ctx context.Context, uuid string) (string, error)
	Snapshots(ctx context.Context, uuid string) ([]snapshot, error)
	// Checkpoints lists the names of a domain's checkpoints.
	Checkpoints(ctx context.Context, uuid string) ([]string, error)

	Define(ctx context.Context, xml string) error
	// Undefine removes a domain with its saved memory and snapshot metadata.
	Undefine(ctx context.Context, uuid string) error
	// Unmark removes vmctl's mark from a domain's configuration and its running state.
	Unmark(ctx context.Context, uuid string) error

	Start(ctx context.Context, uuid string) error
	Shutdown(ctx context.Context, uuid string) error
	Destroy(ctx context.Context, uuid string) error
	// Monitor sends a command to QEMU's human monitor.
	Monitor(ctx context.Context, uuid, command string) (string, error)

	Resume(ctx context.Context, uuid string) error
	// Wake wakes a guest that suspended itself.
	Wake(ctx context.Context, uuid string) error

	// AttachDisk gives a running domain a disk, now and for its next start.
	AttachDisk(ctx context.Context, uuid, xml string) error
	// ChangeMedia puts another file into a drive of a running domain.
	ChangeMedia(ctx context.Context, uuid, xml string) error
	// ResizeDisk grows the disk at a path, and tells the running guest.
	ResizeDisk(ctx context.Context, uuid, path string, bytes uint64) error

	// Pools lists the pools that are active.
	Pools(ctx context.Context) ([]pool, error)
	// Pool reads a pool. Its free space is as old as its last listing.
	Pool(ctx context.Context, name string) (pool, error)
	// Refresh lists a pool anew, and returns it with its free space as it is now.
	Refresh(ctx context.Context, name string) (pool, error)
	// DefinePool makes a pool known, and lets it start with the daemon.
	DefinePool(ctx context.Context, xml string) error
	// StartPool makes the folder of a pool, if it is missing, and starts it.
	StartPool(ctx context.Context, name string) error
	// RemovePool stops a pool, removes its empty folder and forgets it.
	RemovePool(ctx context.Context, name string) error

	// Volumes lists the names of a pool's volumes as they are now.
	Volumes(ctx context.Context, pool string) ([]string, error)
	// Has reports whether the last listing of a pool has a volume.
	Has(ctx context.Context, pool, name string) (bool, error)
	// Upload makes a volume and fills it, or leaves none behind.
	Upload(ctx context.Context, pool string, u upload) error
	// Head returns the first bytes of a volume that a listing has found.
	Head(ctx context.Context, pool, name string, limit uint64) ([]byte, error)
	// Overwrite replaces the first bytes of a volume that is at least as long.
	Overwrite(ctx context.Context, pool, name string, content []byte) error
	DeleteVolume(ctx context.Context, pool, name string) error

	// VolumeInfo reads one volume as it is now.
	VolumeInfo(ctx context.Context, pool, name string) (volume, error)
	// MakeVolume makes an empty volume that takes no room yet. One of that name is an error.
	MakeVolume(ctx context.Context, pool string, v volume) error
	// ResizeVolume grows a volume that nobody uses.
	ResizeVolume(ctx context.Context, pool, name string, bytes uint64) error

	// Networks lists all networks.
	Networks(ctx context.Context) ([]network, error)
	Network(ctx context.Context, uuid string) (network, error)
	NetworkNamed(ctx context.Context, name string) (network, error)
	// Leases lists the addresses that the DHCP server of an active network has given away.
	Leases(ctx context.Context, uuid string) ([]lease, error)
	// DefineNetwork makes a network known, or changes its configuration.
	DefineNetwork(ctx context.Context, xml string) error
	// StartNetwork makes a network start with the daemon, and starts it unless it is active.
	StartNetwork(ctx context.Context, uuid string) error
	// RemoveNetwork ends a network and forgets it.
	RemoveNetwork(ctx context.Context, uuid string) error
	// Reserve gives an address of a network to a MAC, now and for its next start. It fails if the network has an entry for
	// that address or that MAC: isReserved reports that.
	Reserve(ctx context.Context, uuid string, l lease) error
	// Unreserve removes an entry of Reserve.
	Unreserve(ctx context.Context, uuid string, l lease) error

	// Part returns a part of a volume, and where in it that begins, by the rules of
	// providers.ConsoleReader.
	Part(ctx context.Context, pool, name string, from int64, most int) (text []byte, start int64, err error)
}

// version is one of the two descriptions of a running domain.
type version string

// The configured version is for the next start; a domain that is off has no other.
const (
	asConfigured version = "configured"
	asRunning    version = "running"
	// toDefine is the configured version with its secrets, which a new definition must not
	// lose.
	toDefine version = "to define"
)

type domainRef struct {
	UUID, Name string
	Transient  bool // has no configuration: it is gone when it stops
	Saved      bool // its memory is saved: the next start continues from it

	HasSnapshots, HasCheckpoints bool
}

type pool struct {
	Name, Type, Path string
	Active           bool
	Available        uint64 // bytes
}

type upload struct {
	Name    string
	Size    uint64 // bytes
	Content io.Reader
}

type facts struct {
	URI          string
	Libvirt      string // version of the daemon
	Hypervisor   string // version of QEMU
	Capabilities string // XML
	Capacity     providers.Capacity
}

// errNotBuiltIn reports that this build has no libvirt.
var errNotBuiltIn = errors.New("this vmctl was built without libvirt (for " + runtime.GOOS + "/" + runtime.GOARCH +
	"): build it with cgo and the tag libvirt_dlopen, as `make build` does")

// errAbsent reports that the domain, pool, volume or network does not exist.
var errAbsent = errors.New("it does not exist")

// libvirtError is an error that libvirt reported. Code is a virErrorNumber.
type libvirtError struct {
	Code    int
	Message string
}

// Error returns libvirt's message.
func (e *libvirtError) Error() string { return e.Message }

// virErrorNumber, as far as it matters here.
const (
	codeInternal         = 1
	codeNoSupport        = 3
	codeNoConnect        = 5
	codeAuthFailed       = 45
	codeNoDomain         = 42
	codeNoNetwork        = 43
	codeNoPool           = 49
	codeNoVolume         = 50
	codeOperationInvalid = 55
)

// lateError reports that libvirt did not answer in time.
type lateError struct {
	doing string
	err   error
}

// Error names the call.
func (e *lateError) Error() string {
	return fmt.Sprintf("%s: libvirt gave no answer: %v", e.doing, e.err)
}

// Unwrap returns the cause of the end of the wait.
func (e *lateError) Unwrap() error { return e.err }
