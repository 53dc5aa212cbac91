package libvirt

import (
	"context"
	"time"

	"libvirt.org/go/libvirtxml"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// Internals for the tests of this package, which are in an external package.
var (
	DescribeDomain  = describe
	WithOwner       = withOwner
	ParseUsernet    = parseUsernet
	ParseNetdev     = parseNetdev
	IsVolumeOf      = isVolumeOf
	Hostname        = hostname
	JobName         = jobName
	MACOf           = macOf
	MACIn           = macIn
	Messages        = messages
	RoundUp         = roundUp
	ParseCapability = parseCapabilities
)

// The waits for a run state that passes.
const (
	PowerSettles = powerSettles
	PowerEvery   = powerEvery
)

// SizesOf returns the free space of a pool and the capacity of a volume, from their XML.
func SizesOf(poolXML, volumeXML string) (available, capacity uint64, err error) {
	p, err := parsePool(poolXML)
	if err != nil {
		return 0, 0, err
	}
	v, err := parseVolume(volumeXML)
	return p.Available, v.Capacity, err
}

// PlaceOf parses a URI. It fails if the provider refuses the URI.
func PlaceOf(uri string, uid int) (remote string, here, system bool, err error) {
	p, err := parseURI(uri, uid)
	return p.Remote, p.Here, p.System, err
}

// ArchiveFile is a file of a boot archive.
type ArchiveFile = archiveFile

// BootArchive packs files for the kernel.
var BootArchive = bootArchive

// XMLDomain is a domain's description.
type XMLDomain = libvirtxml.Domain

// FakePower returns the run state for libvirt's numbers of a state and a reason.
func FakePower(state, reason int) power { return powerOf(state, reason) }

// Dial connects as a Provider does.
var Dial = dial

// ErrAbsent reports that an object does not exist.
var ErrAbsent = errAbsent

// Version is one of the two versions of a domain.
type Version = version

// The two versions of a domain.
const (
	AsConfigured = asConfigured
	AsRunning    = asRunning
)

// OpenHurried opens a provider that gives an attempt to connect no time.
func OpenHurried(h Host, s providers.Settings) (*Provider, error) {
	p, err := open(h, s, &common{})
	if err == nil {
		p.patience = time.Millisecond
	}
	return p, err
}

// MakeKeys makes the keys of a VM under a folder of keys, and returns their digest. An older
// vmctl used the name as the ID.
func MakeKeys(ctx context.Context, folder, id, name string) (digest string, err error) {
	p := &Provider{settings: providers.Settings{Keys: folder}, common: &common{}}
	k, err := p.ensure(ctx, id, name, machine.Login{}, "")
	return k.digest(), err
}

// KnownKeys returns the digest of a VM's keys.
func KnownKeys(folder, id, name string) (digest string, err error) {
	p := &Provider{settings: providers.Settings{Keys: folder}}
	k, err := p.keyFiles(id, name, machine.Login{}).read("")
	return k.digest(), err
}

// ExternalSnapshot returns the list of one snapshot with files of its own.
func ExternalSnapshot(name string) []snapshot { return []snapshot{{Name: name, External: true}} }
