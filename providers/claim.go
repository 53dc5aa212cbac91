package providers

import (
	"net"
	"net/netip"
	"strings"
)

// ClaimPort is the kind of claims on a port of the host. Their keys are like
// 127.0.0.1:8080/tcp.
const ClaimPort = "host port"

// ClaimDisk is the kind of claims on a disk. Their keys are the IDs of disks. A VM
// holds its disks as long as it is defined with them, running or not.
const ClaimDisk = "disk"

// ClaimName is the kind of claims on the names of VMs.
const ClaimName = "name"

// ClaimUse is the kind of claims on what a system removes only once nobody uses it. Whoever uses it holds the claim, and its
// removal takes it. Their keys are like "volume cache".
const ClaimUse = "use of"

// ClaimAddress is the kind of claims on addresses of networks for VMs. Their keys are like "192.168.123.10 of lab-agents".
const ClaimAddress = "address"

// AddressClaim returns the claim on an address of the network of that name.
func AddressClaim(network string, ip netip.Addr) Claim {
	return Claim{Kind: ClaimAddress, Key: ip.String() + ofNetwork + network}
}

const ofNetwork = " of "

// ClaimMount is the kind of claims on folders of this host at which something is mounted. Their keys are absolute paths. They exclude
// each other if they are equal or one lies in the other, whatever the systems of their holders are.
const ClaimMount = "mount folder"

// OnThisHost reports whether a claim is one on this host, on which objects of all systems agree.
func (c Claim) OnThisHost() bool { return c.Kind == ClaimMount }

// AddressIn returns the address and the name of the network of a claim on an address; zero: it is a claim of another kind.
func (c Claim) AddressIn() (ip netip.Addr, network string) {
	if c.Kind != ClaimAddress {
		return netip.Addr{}, ""
	}
	text, network, _ := strings.Cut(c.Key, ofNetwork)
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, ""
	}
	return ip, network
}

// Claim names something that only one object may hold at a time, such as a port, a disk or a
// name.
type Claim struct{ Kind, Key string }

// String returns the claim for people: `host port 127.0.0.1:8080`.
func (c Claim) String() string { return c.Kind + " " + c.Key }

// Overlaps reports whether two claims exclude each other. A claim on a port at every address
// excludes the claims on that port at each address, one on a mount folder those in that folder.
func (c Claim) Overlaps(other Claim) bool {
	if c == other {
		return true
	}
	if c.Kind == ClaimMount {
		return other.Kind == ClaimMount && (holdsPath(c.Key, other.Key) || holdsPath(other.Key, c.Key))
	}
	return c.Group() == other.Group() && (c.everywhere() || other.everywhere() || c.isAt(other))
}

// isAt reports whether two claims on ports are at one address, however that is written.
func (c Claim) isAt(other Claim) bool {
	host, _, ok := c.port()
	otherHost, _, otherOK := other.port()
	if !ok || !otherOK {
		return false
	}
	ip, err := netip.ParseAddr(host)
	otherIP, otherErr := netip.ParseAddr(otherHost)
	return err == nil && otherErr == nil && ip.Unmap() == otherIP.Unmap()
}

// holdsPath reports whether a folder is another one, or around it.
func holdsPath(folder, path string) bool {
	rest, in := strings.CutPrefix(path, strings.TrimSuffix(folder, "/"))
	return in && (rest == "" || rest[0] == '/')
}

// Group returns a key that all overlapping claims share.
func (c Claim) Group() Claim {
	if c.Kind == ClaimMount {
		return Claim{Kind: c.Kind}
	}
	if _, port, ok := c.port(); ok {
		return Claim{Kind: c.Kind, Key: port}
	}
	return c
}

func (c Claim) everywhere() bool {
	host, _, ok := c.port()
	ip, err := netip.ParseAddr(host)
	return ok && (host == "" || err == nil && ip.IsUnspecified())
}

func (c Claim) port() (host, port string, ok bool) {
	if c.Kind != ClaimPort {
		return "", "", false
	}
	host, port, err := net.SplitHostPort(c.Key)
	return host, port, err == nil
}
