package libvirt

import (
	"fmt"
	"strconv"
	"strings"

	"vmctl/providers/machine"
)

// The user network of a vm: QEMU's own NAT, reached through forwarded ports on
// this host.
const (
	netID     = "vmctl0"
	netPrefix = "user,id=" + netID
	sshPort   = 22
	loopback  = "127.0.0.1"
)

// sshForward returns the forward to the guest's SSH port, which every vm has.
func sshForward(host uint16) machine.Forward {
	return machine.Forward{Guest: sshPort, Host: host, HostIP: loopback, Protocol: machine.TCP}
}

// hostfwd returns the forward in QEMU's notation.
func hostfwd(f machine.Forward) string {
	return fmt.Sprintf("%s:%s:%d-:%d", f.Protocol, f.HostIP, f.Host, f.Guest)
}

// netdev returns the argument of -netdev. The SSH forward comes first in all.
func netdev(all []machine.Forward) string {
	var b strings.Builder
	b.WriteString(netPrefix)
	for _, f := range all {
		b.WriteString(",hostfwd=" + hostfwd(f))
	}
	return b.String()
}

// parseNetdev reads the forwards of a -netdev argument of QEMU's user network, by any author.
// It ignores all other options.
func parseNetdev(arg string) []machine.Forward {
	var all []machine.Forward
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
		f := machine.Forward{Protocol: m[1], HostIP: m[2], Host: uint16(host), Guest: uint16(guest)}
		if f.Protocol == "" {
			f.Protocol = machine.TCP
		}
		if f.HostIP == "" {
			f.HostIP = "0.0.0.0"
		}
		all = append(all, f)
	}
	return all
}

// parseUsernet reads the forwards that a running QEMU holds, from `info usernet`.
func parseUsernet(out string) []machine.Forward {
	var all []machine.Forward
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
		f := machine.Forward{Protocol: strings.ToLower(strings.TrimSuffix(fields[0], "[HOST_FORWARD]")), Guest: uint16(guest), Host: uint16(host), HostIP: fields[2]}
		if f.HostIP == "*" {
			f.HostIP = "0.0.0.0"
		}
		all = append(all, f)
	}
	return all
}

// takenPort finds in a message the forward that QEMU could not set up.
func takenPort(message string) (machine.Forward, bool) {
	m := takenPattern.FindStringSubmatch(message)
	if m == nil {
		return machine.Forward{}, false
	}
	all := parseNetdev("hostfwd=" + m[1])
	if len(all) != 1 {
		return machine.Forward{}, false
	}
	return all[0], true
}
