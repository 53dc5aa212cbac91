package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// Observe lists every domain that bears this project's mark, that q names, or
// that holds a forwarded host port.
func (p *Provider) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv := providers.Inventory{Partial: map[spec.Kind]string{}, Host: map[string]string{}}
	c, err := p.connect(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return inv, context.Cause(ctx)
		}
		inv.Partial[spec.VM] = err.Error()
		return inv, nil
	}
	refs, err := c.Domains(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return inv, context.Cause(ctx)
		}
		inv.Partial[spec.VM] = fmt.Sprintf("list the domains of %s: %v", p.place.URI, err)
		return inv, nil
	}
	seen := make([]look, len(refs))
	var wait sync.WaitGroup
	for i, ref := range refs {
		wait.Go(func() { seen[i] = p.find(ctx, c, ref, q) })
	}
	wait.Go(func() { inv.Host, inv.Missing = p.hostFacts(ctx, c) })
	wait.Wait()
	if ctx.Err() != nil {
		return inv, context.Cause(ctx)
	}
	for _, f := range seen {
		switch {
		case f.unknown != nil:
			inv.Unknown = append(inv.Unknown, *f.unknown)
		case f.object != nil:
			inv.Objects = append(inv.Objects, *f.object)
		}
	}
	slices.SortFunc(inv.Objects, func(a, b providers.Object) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(inv.Unknown, func(a, b providers.Unknown) int { return strings.Compare(a.Name, b.Name) })
	return inv, nil
}

// look is what came of one domain: at most one of the two.
type look struct {
	object  *providers.Object
	unknown *providers.Unknown
}

func (p *Provider) find(ctx context.Context, c connection, ref domainRef, q providers.Query) look {
	s := sight{domainRef: ref}
	xml, err := c.XML(ctx, ref.UUID, asConfigured)
	if err == nil {
		s.configured, err = describe(xml)
	}
	k, asked := p.asked(s, q)
	if err == nil && !asked && len(s.configured.claims()) == 0 {
		return look{}
	}
	if err == nil {
		err = s.seePower(ctx, c)
	}
	if errors.Is(err, errAbsent) { // it went while it was looked at
		return look{}
	}
	if err != nil {
		return look{unknown: &providers.Unknown{Kind: spec.VM, ID: providers.ID(ref.UUID), Name: ref.Name, Reason: err.Error()}}
	}
	var held []forward
	unreadable := ""
	if asked && s.power.on() && s.configured.SSH != nil {
		if held, err = p.heldPorts(ctx, c, s); err != nil {
			unreadable = err.Error()
		}
	}
	o := p.object(s, k, held)
	if unreadable != "" {
		o.Unreadable["ssh_port"], o.Unreadable["ports"] = unreadable, unreadable
	}
	for i, f := range o.Findings {
		if f.Kind == providers.FindBroken {
			o.Findings[i].Evidence = append(f.Evidence, p.evidence(ctx, c, s)...)
		}
	}
	return look{object: &o}
}

// asked reports whether q or this project's mark asks for a domain, and what is
// known of it.
func (p *Provider) asked(s sight, q providers.Query) (providers.Known, bool) {
	for _, k := range q.Known {
		if k.ID == providers.ID(s.UUID) {
			return k, true
		}
	}
	o := s.owner()
	if o != nil && o.ID == p.settings.Project.Lineage() {
		for _, k := range q.Known {
			if k.Address == o.Address {
				return k, true
			}
		}
		return providers.Known{Want: cty.NilVal}, true
	}
	for _, k := range q.Known {
		if k.Name == s.Name {
			return k, true
		}
	}
	return providers.Known{}, false
}

// heldPorts asks QEMU which host ports it holds.
func (p *Provider) heldPorts(ctx context.Context, c connection, s sight) ([]forward, error) {
	out, err := c.Monitor(ctx, s.UUID, "info usernet")
	if err != nil {
		return nil, fmt.Errorf("ask QEMU for its forwarded ports: %w", err)
	}
	return parseUsernet(out), nil
}

// hostFacts are what doctor and status tell of the host.
func (p *Provider) hostFacts(ctx context.Context, c connection) (all map[string]string, missing map[spec.Kind]string) {
	f, err := c.Facts(ctx)
	if err != nil {
		return map[string]string{"libvirt": "unknown: " + err.Error()}, nil
	}
	all = map[string]string{"libvirt": f.Libvirt, "uri": f.URI, "qemu": f.Hypervisor}
	a, err := parseCapabilities(f.Capabilities)
	if err != nil {
		return all, nil
	}
	all["arch"] = a.Arch
	if a.Emulator == "" {
		missing = map[spec.Kind]string{spec.VM: noQEMU(a.Arch) + ": " + installQEMU}
		all["qemu"] = "not installed for " + a.Arch + "; " + installQEMU
		if long := p.longSocket(""); long != "" { // libvirt finds no QEMU where it cannot talk to one
			all["qemu"], missing[spec.VM] = "unusable: "+long, "libvirt cannot use QEMU: "+long
		}
		return all, missing
	}
	all["accel"] = accelKVM
	if _, why := p.chooseType(accelAuto, a); why != "" {
		all["accel"] = accelTCG + ": " + why
	}
	return all, nil
}

// installQEMU is what to type where there is no QEMU.
const installQEMU = "install it: sudo apt-get install qemu-system-x86"

func noQEMU(arch string) string { return "libvirt finds no QEMU for " + arch + " on this host" }
