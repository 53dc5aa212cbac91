package libvirt

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"vmctl/providers"
	"vmctl/providers/guard"
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

// oursFor reports whether vmctl made the domain for an address of that project.
func (s observedDomain) oursFor(p providers.Project, a spec.Address) bool {
	o := s.owner()
	return o != nil && o.ID == p.Lineage() && o.Of == providers.ID(s.UUID) && o.Address == a
}

// fingerprint covers the facts that a step on the domain relies on.
func (s observedDomain) fingerprint(uri string) string {
	var p guard.Print
	p.Add("UUID", s.UUID)
	p.Add("name", s.Name)
	p.Add("run state", s.power.counted())
	if o := s.owner(); o != nil {
		p.AddMark(&o.Mark)
	}
	for _, c := range s.claims(uri) {
		p.Add("claim", c.String())
	}
	for _, file := range s.owner().ownFiles() {
		p.Add("own disk", file)
	}
	for _, l := range s.layers(uri) {
		p.Add("layer", l.what)
	}
	s.configured.addTo(&p, "")
	if s.running != nil {
		s.running.addTo(&p, "running ")
	}
	return p.String()
}

// addTo adds one version of the domain's description.
func (d description) addTo(p *guard.Print, prefix string) {
	p.Add(prefix+"cpus", strconv.FormatUint(d.cpus(), 10))
	p.Add(prefix+"memory", strconv.FormatUint(d.memory(), 10))
	p.Add(prefix+"accel", d.accel())
	p.Add(prefix+"boot files", d.Kernel+" "+d.Initrd)
	p.Add(prefix+"kernel command line", guard.Short(d.Cmdline))
	var forwards []string
	for _, f := range d.wantedForwards() {
		forwards = append(forwards, hostfwd(f))
	}
	p.Add(prefix+"forwarded ports", strings.Join(forwards, " "))
	for _, drive := range d.disks() {
		p.Add(prefix+"disk", drive.file())
	}
}

func nameClaim(uri, name string) providers.Claim {
	return providers.Claim{Kind: providers.ClaimName, Key: uri + " " + name}
}

// claims returns the claims of the domain: it holds them as long as it is defined. Claims of
// its running configuration count until it stops.
func (s observedDomain) claims(uri string) []providers.Claim {
	all := append([]providers.Claim{nameClaim(uri, s.Name)}, s.configured.claims()...)
	if s.running != nil {
		for _, c := range s.running.claims() {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}
