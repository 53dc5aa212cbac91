package libvirt

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/machine"
)

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
