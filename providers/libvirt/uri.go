package libvirt

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// The connections of this machine.
const (
	systemURI  = "qemu:///system"
	sessionURI = "qemu:///session"
)

// location is the parsed URI of a connection.
type location struct {
	URI    string
	Remote string // host name; "" on this machine
	Here   bool   // the daemon certainly sees this machine's files
	System bool   // the daemon runs as root
	Test   bool   // libvirt's test driver
}

// resolve fills in the default URI for this user: the user's own daemon for an ordinary user,
// the system's for root.
func resolve(attrs cty.Value, uid int) cty.Value {
	if !attrs.GetAttr("uri").IsNull() {
		return attrs
	}
	all := attrs.AsValueMap()
	all["uri"] = cty.StringVal(sessionURI)
	if uid == 0 {
		all["uri"] = cty.StringVal(systemURI)
	}
	return cty.ObjectVal(all)
}

// parseURI parses a URI. It fails unless the URI leads to QEMU.
func parseURI(text string, uid int) (location, error) {
	u, err := url.Parse(text)
	if err != nil {
		return location{}, fmt.Errorf("uri = %q is no libvirt URI: write it like %q or %q", text, sessionURI, systemURI)
	}
	driver, transport, _ := strings.Cut(u.Scheme, "+")
	p := location{URI: text, Remote: u.Hostname()}
	// The daemon behind a named socket may be on another machine, or in a container.
	p.Here = u.Host == "" && (transport == "" || transport == "unix") && !u.Query().Has("socket")
	switch {
	case driver == "test":
		p.Test = true
		return p, nil
	case driver != "qemu":
		return location{}, fmt.Errorf("uri = %q is no connection to QEMU: write it like %q or %q", text, sessionURI, systemURI)
	case !slices.Contains([]string{"", "unix", "ssh", "tls", "tcp", "libssh", "libssh2"}, transport):
		return location{}, fmt.Errorf("uri = %q: libvirt has no transport %q", text, transport)
	case filepath.Clean(u.Path) == "/embed":
		return location{}, fmt.Errorf("uri = %q is refused: merely looking through the embedded driver can end processes "+
			"that are not its own, after a reboot or a copied folder; use %q, which needs no system service either", text, sessionURI)
	case u.Path == "/system":
		p.System = true
	case u.Path == "/session":
		p.System = uid == 0 && p.Remote == "" && u.RawQuery == ""
	default:
		return location{}, fmt.Errorf("uri = %q: QEMU has the connections %q and %q", text, sessionURI, systemURI)
	}
	return p, nil
}
