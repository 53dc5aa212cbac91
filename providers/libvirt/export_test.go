package libvirt

// What the tests of this package, which stand outside of it, look into.
var (
	DescribeDomain  = describe
	WithOwner       = withOwner
	ParseUsernet    = parseUsernet
	ParseNetdev     = parseNetdev
	Differences     = differences
	IsVolumeOf      = isVolumeOf
	MACOf           = macOf
	Messages        = messages
	RoundUp         = roundUp
	ParseCapability = parseCapabilities
)

// PlaceOf says where a URI leads, or why it is refused.
func PlaceOf(uri string, uid int) (remote string, system bool, err error) {
	p, err := parseURI(uri, uid)
	return p.Remote, p.System, err
}

// ArchiveFile is a file of a boot archive.
type ArchiveFile = archiveFile

// BootArchive packs files for the kernel.
var BootArchive = bootArchive

// FakePower is what a fake domain's run state is made of.
func FakePower(state, reason int) power { return powerOf(state, reason) }
