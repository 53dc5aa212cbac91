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
	var all []heldPort
	var taken error
	err := p.lookUp(func(x *index) error {
		isFree := func(port providers.Claim) bool {
			overlaps := func(h heldPort) bool { return h.got().Claim().Overlaps(port) }
			return !slices.ContainsFunc(all, overlaps) && !p.isHeld(x, port, f.Name)
		}
		for _, forward := range f.Config.Forwards {
			if forward.Fixed() && !isFree(forward.Claim()) {
				taken = j.portTaken(forward.Listens())
				return nil
			}
			all = append(all, heldPort{Forward: forward, Got: choosePort(forward, isFree)})
		}
		return nil
	})
	if err != nil {
		return nil, fail(err, "start %s", j.Name)
	}
	return all, taken
}

// isHeld reports whether a running VM other than but holds a host port.
func (p recordRunner) isHeld(x *index, port providers.Claim, but string) bool {
	return slices.ContainsFunc(x.runsOn(port, but), func(r *runFile) bool { return !p.hasEnded(r) })
}

// choosePort returns the host port of a forward: the fixed one, else one that is free.
func choosePort(f machine.Forward, isFree func(providers.Claim) bool) uint16 {
	if f.Fixed() {
		return f.Host
	}
	first := rand.N(uint16(portCount)) //nolint:gosec // a port is no secret
	for i := range uint16(portCount) {
		f.Host = firstPort + (first+i)%portCount
		if isFree(f.Claim()) {
			break
		}
	}
	return f.Host
}

// portTaken returns the failure of a start for a host port that somebody has.
func (j *job) portTaken(listens string) *providers.Problem {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "port_taken",
		Next: providers.Say(fmt.Sprintf("set another host port in port_forward of %s, or \"auto\"", j.Address)),
		Err:  fmt.Errorf("start %s: host port %s is taken", j.Address, listens),
	}
}
