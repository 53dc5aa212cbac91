package libvirt

import (
	"context"
	"fmt"
	"time"

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

// settling is a connection that waits for a run state that passes in a moment, such as that of a
// domain which libvirt is starting.
type settling struct {
	connection
	sleep func(ctx context.Context, d time.Duration) error
}

func (p *Provider) settling(c connection) settling { return settling{connection: c, sleep: p.sleep} }

// The time that a run state gets to settle, and the pause between two readings.
const (
	powerSettles = 5 * time.Second
	powerEvery   = 50 * time.Millisecond
)

// Power reads a run state until it has settled. It returns the last reading if that takes too long.
func (s settling) Power(ctx context.Context, uuid string) (power, error) {
	for waited := time.Duration(0); ; waited += powerEvery {
		now, err := s.connection.Power(ctx, uuid)
		if err != nil || now.Reason != inPassing || waited >= powerSettles {
			return now, err
		}
		if err := s.sleep(ctx, powerEvery); err != nil {
			return now, fmt.Errorf("wait while it is %s: %w", now.Words, err)
		}
	}
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
