package libvirt

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"vmctl/providers"
)

// The user network of a vm: QEMU's own NAT, reached through forwarded ports on
// this host.
const (
	netID     = "vmctl0"
	netPrefix = "user,id=" + netID
	sshPort   = 22
	loopback  = "127.0.0.1"
	protoTCP  = "tcp"
	protoUDP  = "udp"
)

// sshForward is the one that every vm has.
func sshForward(host uint16) forward {
	return forward{Guest: sshPort, Host: host, HostIP: loopback, Protocol: protoTCP}
}

// claimKey names what the forward listens on: 127.0.0.1:8080/tcp.
func (f forward) claimKey() string {
	return net.JoinHostPort(f.HostIP, strconv.Itoa(int(f.Host))) + "/" + f.Protocol
}

func (f forward) claim() providers.Claim {
	return providers.Claim{Kind: providers.ClaimPort, Key: f.claimKey()}
}

// hostfwd is the forward as QEMU writes it.
func (f forward) hostfwd() string {
	return fmt.Sprintf("%s:%s:%d-:%d", f.Protocol, f.HostIP, f.Host, f.Guest)
}

// netdev is the argument of -netdev: the SSH forward first.
func netdev(all []forward) string {
	var b strings.Builder
	b.WriteString(netPrefix)
	for _, f := range all {
		b.WriteString(",hostfwd=" + f.hostfwd())
	}
	return b.String()
}

// parseNetdev reads the forwards of a -netdev argument of QEMU's user network,
// whoever wrote it. What is no forward is left out.
func parseNetdev(arg string) []forward {
	var all []forward
	for option := range strings.SplitSeq(arg, ",") {
		rule, ok := strings.CutPrefix(option, "hostfwd=")
		if !ok {
			continue
		}
		m := hostfwdPattern.FindStringSubmatch(rule)
		if m == nil {
			continue
		}
		host, hostErr := strconv.ParseUint(m[3], 10, 16)
		guest, guestErr := strconv.ParseUint(m[4], 10, 16)
		if hostErr != nil || guestErr != nil {
			continue
		}
		f := forward{Protocol: m[1], HostIP: m[2], Host: uint16(host), Guest: uint16(guest)}
		if f.Protocol == "" {
			f.Protocol = protoTCP
		}
		if f.HostIP == "" {
			f.HostIP = "0.0.0.0"
		}
		all = append(all, f)
	}
	return all
}

// parseUsernet reads the forwards that a running QEMU holds, from `info usernet`.
func parseUsernet(out string) []forward {
	var all []forward
	for line := range strings.Lines(out) {
		// TCP[HOST_FORWARD]  11  127.0.0.1 45469  10.0.2.15  22  0  0
		fields := strings.Fields(line)
		if len(fields) < 6 || !strings.HasSuffix(fields[0], "[HOST_FORWARD]") {
			continue
		}
		host, hostErr := strconv.ParseUint(fields[3], 10, 16)
		guest, guestErr := strconv.ParseUint(fields[5], 10, 16)
		if hostErr != nil || guestErr != nil {
			continue
		}
		f := forward{Protocol: strings.ToLower(strings.TrimSuffix(fields[0], "[HOST_FORWARD]")), Guest: uint16(guest), Host: uint16(host), HostIP: fields[2]}
		if f.HostIP == "*" {
			f.HostIP = "0.0.0.0"
		}
		all = append(all, f)
	}
	return all
}

// takenPort finds the forward that QEMU could not set up.
func takenPort(message string) (forward, bool) {
	m := takenPattern.FindStringSubmatch(message)
	if m == nil {
		return forward{}, false
	}
	all := parseNetdev("hostfwd=" + m[1])
	if len(all) != 1 {
		return forward{}, false
	}
	return all[0], true
}
