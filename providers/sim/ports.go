package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// The host ports that a weightless VM gets by "auto": the dynamic ports of RFC 6335, section 6.
const (
	firstPort = 49152
	portCount = 1<<16 - firstPort
)

// choosePorts returns the forwarded ports of a weightless VM that starts. Like the kernel it
// refuses a host port that a running VM of the host has, and chooses one that none has.
func (p recordRunner) choosePorts(j *job, f vmFile) ([]heldPort, error) {
	if len(f.Config.Forwards) == 0 {
		return nil, nil
	}
	taken, err := p.portsInUse(f.Name)
	if err != nil {
		return nil, fail(err, "start %s", j.Name)
	}
	used := func(f machine.Forward) bool { return slices.ContainsFunc(taken, f.Claim().Overlaps) }
	var all []heldPort
	for _, forward := range f.Config.Forwards {
		got := forward
		switch {
		case forward.Fixed() && used(forward):
			return nil, j.portTaken(forward.Listens())
		case !forward.Fixed():
			first := rand.N(uint16(portCount)) //nolint:gosec // a port is no secret
			for i := uint16(0); i < portCount && (i == 0 || used(got)); i++ {
				got.Host = firstPort + (first+i)%portCount
			}
		}
		all = append(all, heldPort{Forward: forward, Got: got.Host})
		taken = append(taken, got.Claim())
	}
	return all, nil
}

// portsInUse returns the claims on the host ports that the other running weightless VMs of the
// host have.
func (p recordRunner) portsInUse(but string) ([]providers.Claim, error) {
	names, err := p.named(vmsDir, vmSuffix)
	if err != nil {
		return nil, err
	}
	var all []providers.Claim
	for _, name := range names {
		f, err := p.readVM(name)
		if err != nil || name == but || f.Run == nil || p.hasEnded(f.Run) { // a plan reports an error
			continue
		}
		for _, h := range f.Run.Ports {
			all = append(all, h.got().Claim())
		}
	}
	return all, nil
}

// portTaken returns the failure of a start for a host port that somebody has.
func (j *job) portTaken(listens string) *providers.Problem {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "port_taken",
		Next: providers.Say(fmt.Sprintf("set another host port in port_forward of %s, or \"auto\"", j.Address)),
		Err:  fmt.Errorf("start %s: host port %s is taken", j.Address, listens),
	}
}
