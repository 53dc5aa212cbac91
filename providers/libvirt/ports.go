package libvirt

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
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

// hostfwdOption begins a forward in an option -netdev of QEMU.
const hostfwdOption = "hostfwd="

// parseNetdev reads the forwards of a -netdev argument of QEMU's user network, by any author.
// It ignores all other options.
func parseNetdev(arg string) []machine.Forward {
	var all []machine.Forward
	for option := range strings.SplitSeq(arg, ",") {
		rule, ok := strings.CutPrefix(option, hostfwdOption)
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

// recordedPorts returns the forwards with their last known host ports: from the definition,
// else from the record.
func (j *job) recordedPorts() []machine.Forward {
	d := j.seen.configured
	all := append([]machine.Forward{sshForward(0)}, d.Forwards...)
	if d.SSH != nil {
		all[0].Host = d.SSH.Host
	}
	if all[0].Host == 0 {
		all[0].Host = uint16(ctyread.Uint(j.Prior, "ssh_port"))
	}
	recorded := ctyread.Attr(j.Prior, "ports")
	if !ctyread.Known(recorded) || !recorded.Type().IsMapType() {
		return all
	}
	for i, f := range all[1:] {
		port, ok := recorded.AsValueMap()[strconv.Itoa(int(f.Guest))]
		if f.Host != 0 || !ok || !ctyread.Known(port) || port.Type() != cty.Number {
			continue
		}
		n, _ := port.AsBigFloat().Uint64()
		if !slices.ContainsFunc(all, func(other machine.Forward) bool { return other.Host == uint16(n) }) {
			all[i+1].Host = uint16(n)
		}
	}
	return all
}

// keepPorts writes the host ports that QEMU holds into the definition, so that
// the next start asks for them again.
func (j *job) keepPorts(ctx context.Context) error {
	held, err := j.heldPorts(ctx, j.connection, *j.seen)
	if err != nil {
		return err
	}
	all := j.recordedPorts()
	all[0].Host = sshPortOf(held, j.seen.configured)
	for i, f := range j.seen.configured.wantedForwards() {
		if !f.Fixed() {
			all[i+1].Host = heldPort(held, f)
		}
	}
	return j.edit(ctx, "define "+j.Name, retarget(j.seen.configured.Virtualized, all))
}

func (j *job) portTaken(f machine.Forward) error {
	filter := "sport = :" + fmt.Sprint(f.Host)
	option := "-ltnp"
	if f.Protocol == machine.UDP {
		option = "-lunp"
	}
	next := []string{
		fmt.Sprintf("see who holds it: ss %s '%s'", option, filter),
		fmt.Sprintf("or set another host port in port_forward of %s, or \"auto\"", j.Address),
	}
	if ip, err := netip.ParseAddr(f.HostIP); err == nil && !ip.IsLoopback() && !ip.IsUnspecified() { // QEMU says the same of both
		next = append(next, fmt.Sprintf("or see whether the host has the address %s: ip address", ip))
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "port_taken", Next: providers.Say(next...),
		Err: fmt.Errorf("start %s: host port %s is taken", j.Address, f.Claim().Key),
	}
}

// stickyPorts returns the wanted forwards with the host ports of the present definition.
func (j *job) stickyPorts() []machine.Forward {
	all := append([]machine.Forward{sshForward(0)}, j.want.Forwards...)
	if j.seen == nil {
		return all
	}
	if j.seen.configured.SSH != nil {
		all[0].Host = j.seen.configured.SSH.Host
	}
	for i, f := range all[1:] {
		if f.Fixed() {
			continue
		}
		sticky := heldPort(j.seen.configured.Forwards, f)
		if !slices.ContainsFunc(all, func(other machine.Forward) bool { return other.Host == sticky }) {
			all[i+1].Host = sticky
		}
	}
	return all
}
