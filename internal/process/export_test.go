package process

// What a test can reach only from inside: an operating system of its own, and
// the parsers of systems that it does not run on.
type (
	System       = system
	Handle       = handle
	Facts        = processFacts
	HostIdentity = hostIdentity
)

var (
	ErrNone       = errNone
	ParseProcargs = parseProcargs
	Descendants   = descendants
	ThisSystem    = thisSystem
)

func NewHost(s System) Host          { return Host{system: s} }
func Unsupported(name string) System { return unsupported{name: name} }
