package libvirt

import (
	"context"

	"vmctl/providers"
	"vmctl/spec"
)

// observedDomain holds all observations of one domain.
type observedDomain struct {
	domainRef
	power      power
	configured description  // the configuration for the next start
	running    *description // the configuration of the running QEMU; nil: it is off
	wanted     bool         // it is to be imported
	root       *rootSeen    // its own disk; nil: it has none, or nobody asked
	lost       []string     // problems of the boot files that vmctl gave it

	snapshots   []snapshot
	checkpoints []string
	job         string // its long operation: "backup"; "": none
}

// observeDomain reads a domain. A domain that does not exist is errAbsent.
func observeDomain(ctx context.Context, c connection, ref domainRef) (observedDomain, error) {
	s := observedDomain{domainRef: ref}
	text, err := c.XML(ctx, ref.UUID, asConfigured)
	if err != nil {
		return s, err
	}
	if s.configured, err = describe(text); err != nil {
		return s, err
	}
	if err := s.observePower(ctx, c); err != nil {
		return s, err
	}
	return s, s.observeLayers(ctx, c)
}

// observePower reads the run state and, for a running domain, its running configuration.
func (s *observedDomain) observePower(ctx context.Context, c connection) error {
	var err error
	if s.power, err = c.Power(ctx, s.UUID); err != nil {
		return err
	}
	if !s.power.on() {
		return nil
	}
	text, err := c.XML(ctx, s.UUID, asRunning)
	if err != nil {
		return err
	}
	d, err := describe(text)
	switch {
	case s.Transient: // libvirt still shows the removed definition, with its mark
		s.configured.Owner = d.Owner
	case d.Owner == nil: // a running domain gets a new mark at its next start
		d.Owner = s.configured.Owner
	}
	s.running = &d
	if err != nil {
		return err
	}
	s.job, err = c.Job(ctx, s.UUID)
	return err
}

// owner returns the mark, nil without one.
func (s observedDomain) owner() *owner { return s.configured.Owner }

// mark returns the mark. It is zero without a domain or a mark.
func (s *observedDomain) mark() owner {
	if s == nil {
		return owner{}
	}
	return s.configured.mark()
}

// oursFor reports whether vmctl made the domain for an address of that project.
func (s observedDomain) oursFor(p providers.Project, a spec.Address) bool {
	o := s.owner()
	return o != nil && o.ID == p.Lineage() && o.Of == providers.ID(s.UUID) && o.Address == a
}

func nameClaim(uri, name string) providers.Claim {
	return providers.Claim{Kind: providers.ClaimName, Key: uri + " " + name}
}
