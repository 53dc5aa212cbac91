package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/machine"
)

// place is a network that a domain is to be in.
type place struct {
	markedNetwork
	in observedNetwork
}

// lease returns the host entry of the place.
func (p place) lease() lease { return lease{MAC: p.MAC, IP: p.IP} }

// place finds the networks of the wanted interfaces.
func (j *job) place(ctx context.Context) error {
	j.placed = nil
	for _, i := range j.want.Interfaces {
		found, err := j.Network(ctx, string(j.Uses[i.Network].ID))
		if errors.Is(err, errAbsent) {
			return &providers.Problem{
				Outcome: providers.Failed, Code: "no_network", Next: providers.Vmctl("plan"),
				Err: fmt.Errorf("%s %s: its network %s is gone", j.Op, j.Address, i.Network),
			}
		}
		var in observedNetwork
		if err == nil {
			in, err = found.observed()
		}
		if err != nil {
			return fail(err, "%s %s: read its network %s", j.Op, j.Address, i.Network)
		}
		j.placed = append(j.placed, place{markedNetwork{Address: i.Network, Name: in.Name, MAC: j.macIn(in.Name), IP: i.IP}, in})
	}
	return nil
}

// macIn returns the MAC of the domain's card in a network: the one that it has, else the one that a new card gets.
func (j *job) macIn(network string) string {
	had := j.seen.mark().Networks
	if i := slices.IndexFunc(had, func(n markedNetwork) bool { return n.Name == network }); i >= 0 {
		return had[i].MAC
	}
	return macIn(j.Name, network)
}

func (j *job) markedNetworks() []markedNetwork {
	var all []markedNetwork
	for _, p := range j.placed {
		all = append(all, p.markedNetwork)
	}
	return all
}

// isPlaced reports whether a domain is in just its wanted networks, and its addresses are reserved there.
func (j *job) isPlaced(d description) bool {
	return slices.Equal(d.mark().Networks, j.markedNetworks()) && slices.Equal(d.places(), j.markedNetworks()) &&
		!slices.ContainsFunc(j.placed, func(p place) bool { return p.in.entry(p.MAC) != p.IP })
}

// reserve gives the domain its addresses in the networks, before it is defined. libvirt gives an address to one card alone.
func (j *job) reserve(ctx context.Context) error {
	for _, p := range j.placed {
		had := p.in.entry(p.MAC)
		if had == p.IP {
			continue
		}
		if err := j.isFree(ctx, p); err != nil {
			return err
		}
		if had.IsValid() {
			if err := j.Unreserve(ctx, p.in.UUID, lease{MAC: p.MAC, IP: had}); err != nil {
				return fail(err, "%s %s: release its address %s of %s", j.Op, j.Address, had, p.Name)
			}
		}
		err := j.Reserve(ctx, p.in.UUID, p.lease())
		if isReserved(err) {
			return machine.AddressTaken(j.Work, p.IP, p.Name, "a host entry of the network")
		}
		if err != nil {
			return fail(err, "%s %s: reserve its address %s of %s", j.Op, j.Address, p.IP, p.Name)
		}
	}
	return nil
}

// isFree fails if another card has the address of a place, by a host entry or by a lease.
func (j *job) isFree(ctx context.Context, p place) error {
	others := func(l lease) bool { return l.IP == p.IP && l.MAC != p.MAC }
	if i := slices.IndexFunc(p.in.Entries, others); i >= 0 {
		return machine.AddressTaken(j.Work, p.IP, p.Name, "a host entry of the network, for "+p.in.Entries[i].MAC+",")
	}
	if !p.in.Active {
		return nil
	}
	leases, err := j.Leases(ctx, p.in.UUID)
	if err != nil {
		return fail(err, "%s %s: list the leases of its network %s", j.Op, j.Address, p.Name)
	}
	if i := slices.IndexFunc(leases, others); i >= 0 {
		return machine.AddressTaken(j.Work, p.IP, p.Name, "a lease of the network, of "+leases[i].MAC+",")
	}
	return nil
}

// release removes the domain's host entries from all networks but those that it stays in. A domain that is deleted may have one that an
// interrupted step made. Where libvirt cannot list its networks, such as without their daemon, that keeps no other domain from going.
func (j *job) release(ctx context.Context, stays []markedNetwork) error {
	wasIn := len(j.seen.mark().Networks)+len(j.placed)+len(ctyread.List(ctyread.Attr(j.Prior, networkAttr))) > 0
	if j.Op != opDelete && !wasIn {
		return nil
	}
	all, err := j.networks(ctx, j.connection)
	if err != nil && !wasIn && ctx.Err() == nil {
		return nil
	}
	if err != nil {
		return fail(err, "release the addresses of %s", j.Name)
	}
	for _, n := range all {
		in, err := n.observed()
		if err != nil {
			return fail(err, "release the addresses of %s", j.Name)
		}
		if slices.ContainsFunc(stays, func(s markedNetwork) bool { return s.Name == n.Name }) {
			continue
		}
		mac := j.macIn(n.Name)
		had := in.entry(mac)
		if !had.IsValid() {
			continue
		}
		if err := j.Unreserve(ctx, n.UUID, lease{MAC: mac, IP: had}); err != nil && !errors.Is(err, errAbsent) {
			return fail(err, "release the address %s of %s in %s", had, j.Name, n.Name)
		}
	}
	return nil
}

// leaving returns the names of the networks that the step takes the domain out of.
func (j *job) leaving(ctx context.Context) ([]string, error) {
	var names []string
	for _, n := range j.seen.mark().Networks {
		if slices.Contains(j.Frees, providers.AddressClaim(n.Name, n.IP)) {
			names = append(names, n.Name)
			continue
		}
		in, err := j.NetworkNamed(ctx, n.Name)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return nil, fail(err, "look for the network %s of %s", n.Name, j.Name)
		}
		if slices.Contains(j.Frees, machine.NetworkUse(providers.ID(in.UUID))) {
			names = append(names, n.Name)
		}
	}
	return names, nil
}

// networks lists the networks of a connection; none where libvirt has no driver for them.
func (p *Provider) networks(ctx context.Context, c connection) ([]network, error) {
	all, err := c.Networks(ctx)
	var e *libvirtError
	if errors.As(err, &e) && e.Code == codeNoSupport {
		return nil, nil
	}
	return all, err
}
