package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// Observe lists every domain, disk and network that bears this project's mark or that q names, and
// every domain that holds a forwarded host port or one of these disks, or is in one of these networks.
func (p *Provider) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv := providers.Inventory{Partial: map[spec.Kind]*providers.Problem{}, Found: map[spec.Address]providers.ID{}, Host: map[string]string{}}
	connected, err := p.connect(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return inv, context.Cause(ctx)
		}
		markUnread(inv, q, err)
		return inv, nil
	}
	c := p.readOnly(ctx, connected)
	refs, err := c.Domains(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return inv, context.Cause(ctx)
		}
		markUnread(inv, q, fmt.Errorf("list the domains of %s: %w", p.location.URI, err))
		return inv, nil
	}
	var r diskIndex
	asked := newRequest(q)
	var networks networkIndex
	all := make([]listedDomain, len(refs))
	panics := parallel(len(refs)+2, func(i int) {
		switch i {
		case len(refs):
			r = p.indexDisks(ctx, c, asked)
		case len(refs) + 1:
			networks = p.indexNetworks(ctx, c, asked)
		default:
			all[i] = p.readConfigured(ctx, c, refs[i], asked)
		}
	})
	for i, err := range panics[:len(refs)] {
		if err != nil {
			all[i] = listedDomain{observedDomain: observedDomain{domainRef: refs[i]}, err: err}
		}
	}
	if err := panics[len(refs)]; err != nil {
		r = diskIndex{partial: err}
	}
	if err := panics[len(refs)+1]; err != nil {
		networks = networkIndex{partial: err}
	}
	r.networks = networks
	seen := make([]domainResult, len(refs))
	panics = parallel(len(refs)+1, func(i int) {
		if i == len(refs) {
			p.hostFacts(ctx, c, &inv)
			return
		}
		seen[i] = p.find(ctx, c, all[i], asked, r)
	})
	for i, err := range panics[:len(refs)] {
		if err != nil {
			seen[i] = domainResult{uuid: refs[i].UUID, unknown: &providers.Unknown{
				Kind: spec.VM, ID: providers.ID(refs[i].UUID), Name: refs[i].Name, Reason: err.Error(),
			}}
		}
	}
	if err := panics[len(refs)]; err != nil {
		inv.Partial[spec.VM] = providers.Unread(err)
	}
	if ctx.Err() != nil {
		return inv, context.Cause(ctx)
	}
	p.collect(&inv, seen, r)
	return inv, nil
}

// markUnread notes that nothing could be listed.
func markUnread(inv providers.Inventory, q providers.Query, why error) {
	unread := providers.Unread(why)
	inv.Partial[spec.VM], inv.Partial[spec.Disk] = unread, unread
	if asksFor(q, spec.Network) {
		inv.Partial[spec.Network] = unread
	}
}

func asksFor(q providers.Query, kind spec.Kind) bool {
	return slices.ContainsFunc(q.Known, func(k providers.Known) bool { return k.Kind == kind })
}

// parallel calls f for every number below n at the same time, and returns when all calls
// have. A call that panicked has an error, a *providers.PanicError.
func parallel(n int, f func(i int)) []error {
	var wait sync.WaitGroup
	panics := make([]error, n)
	for i := range n {
		wait.Go(func() {
			panics[i] = providers.Contain(func() error {
				f(i)
				return nil
			})
		})
	}
	wait.Wait()
	return panics
}

// collect puts all observations into an inventory.
func (p *Provider) collect(inv *providers.Inventory, seen []domainResult, r diskIndex) {
	var domains []observedDomain
	for _, l := range seen {
		switch {
		case l.unknown != nil:
			inv.Unknown = append(inv.Unknown, *l.unknown)
		case l.object != nil:
			inv.Objects = append(inv.Objects, *l.object)
			domains = append(domains, l.domain)
		}
		for _, a := range l.found {
			inv.Found[a] = providers.ID(l.uuid)
		}
	}
	var volumes []string
	for _, d := range r.disks {
		volumes = append(volumes, d.Path)
	}
	users := p.users(r.listing, volumes, domains)
	for _, d := range r.disks {
		inv.Objects = append(inv.Objects, d.object(p.location.URI, users[d.Path]))
	}
	p.collectNetworks(inv, domains, r.networks)
	inv.Unknown = append(inv.Unknown, r.unknown...)
	maps.Copy(inv.Found, r.found)
	if r.partial != nil {
		inv.Partial[spec.Disk] = providers.Unread(r.partial)
	}
	slices.SortFunc(inv.Objects, func(a, b providers.Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(inv.Unknown, func(a, b providers.Unknown) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

// listedDomain holds the first reading of a domain: its configuration, or the reason why that cannot
// be read.
type listedDomain struct {
	observedDomain
	unread string // its description, which nobody has needed yet; "": it was read
	err    error
}

// readConfigured reads the configuration of a domain. It leaves the description of a domain unread
// that bears no mark, holds no host port, and is not asked for: only its disks may matter.
func (p *Provider) readConfigured(ctx context.Context, c connection, ref domainRef, q request) listedDomain {
	f := listedDomain{observedDomain: observedDomain{domainRef: ref}}
	var text string
	text, f.err = c.XML(ctx, ref.UUID, asConfigured)
	_, asked := p.asked(f.observedDomain, q)
	switch {
	case f.err != nil:
	case asked || strings.Contains(text, ownerSpace) || strings.Contains(text, hostfwdOption):
		f.configured, f.err = describe(text)
	default:
		f.unread = text
	}
	return f
}

// domainResult holds the result for one domain: at most one of object and unknown.
type domainResult struct {
	domain  observedDomain
	object  *providers.Object
	unknown *providers.Unknown
	uuid    string
	found   []spec.Address // addresses whose import names it
}

func (p *Provider) find(ctx context.Context, c connection, f listedDomain, q request, r diskIndex) domainResult {
	s, err := f.observedDomain, f.err
	if f.unread != "" {
		if len(r.disks) == 0 && len(r.networks.seen) == 0 {
			return domainResult{uuid: s.UUID}
		}
		s.configured, err = describe(f.unread)
	}
	l := domainResult{uuid: s.UUID, found: q.importers(s)}
	k, asked := p.asked(s, q)
	s.wanted = len(l.found) > 0
	if err == nil && !asked && len(s.configured.claims()) == 0 && len(r.disks) == 0 && len(r.networks.seen) == 0 {
		return l
	}
	if err == nil && asked {
		err = s.observePower(ctx, p.settling(c))
	} else if err == nil {
		err = s.observePower(ctx, c)
	}
	if err == nil && !asked && len(s.configured.claims()) == 0 && len(r.claims(s)) == 0 && len(r.networks.claims(s)) == 0 {
		return l
	}
	if errors.Is(err, errAbsent) { // it was removed meanwhile
		return domainResult{}
	}
	if err != nil {
		l.unknown = &providers.Unknown{Kind: spec.VM, ID: providers.ID(s.UUID), Name: s.Name, Reason: err.Error()}
		return l
	}
	var held []machine.Forward
	unreadable := ""
	if asked && s.power.on() && s.configured.SSH != nil {
		if held, err = p.heldPorts(ctx, c, s); err != nil {
			unreadable = err.Error()
		}
	}
	if asked {
		s.root = p.root(ctx, c, s, r)
		s.lost = p.lost(ctx, c, s, r)
		if err := s.observeLayers(ctx, c); err != nil {
			l.unknown = &providers.Unknown{Kind: spec.VM, ID: providers.ID(s.UUID), Name: s.Name, Reason: err.Error()}
			return l
		}
	}
	o := p.object(s, k, held, r)
	if unreadable != "" {
		o.Unreadable["ssh_port"], o.Unreadable["ports"] = unreadable, unreadable
	}
	if s.root != nil && s.root.unreadable != "" {
		o.Unreadable[rootAttr+".size"] = s.root.unreadable
	}
	if why := r.networks.unreadOf(s.configured); why != "" {
		o.Unreadable[networkAttr] = why
	}
	for i, f := range o.Findings {
		if f.Kind == providers.FindBroken || f.Kind == providers.FindCrashed {
			o.Findings[i].Evidence = append(f.Evidence, p.evidence(ctx, c, s)...)
		}
	}
	l.domain, l.object = s, &o
	return l
}

// heldPorts asks QEMU which host ports it holds.
func (p *Provider) heldPorts(ctx context.Context, c connection, s observedDomain) ([]machine.Forward, error) {
	out, err := c.Monitor(ctx, s.UUID, "info usernet")
	if err != nil {
		return nil, fmt.Errorf("ask QEMU for its forwarded ports: %w", err)
	}
	return parseUsernet(out), nil
}

// hostFacts notes the facts of the host for doctor and status, and the kinds for which the host
// lacks software.
func (p *Provider) hostFacts(ctx context.Context, c connection, inv *providers.Inventory) {
	inv.Booted = p.booted()
	f, err := c.Facts(ctx)
	if err != nil {
		inv.Blind = providers.Unread(fmt.Errorf("read the facts of the host of %s: %w", p.location.URI, err))
		return
	}
	inv.Capacity = f.Capacity
	inv.Host = map[string]string{"libvirt": f.Libvirt, "uri": f.URI, "qemu": f.Hypervisor}
	a, err := parseCapabilities(f.Capabilities)
	if err != nil {
		return
	}
	inv.Host["arch"] = a.Arch
	if a.Emulator == "" {
		delete(inv.Host, "qemu")
		lacks := providers.Refuse(noQEMU(a.Arch), providers.Say(installQEMU))
		if long := p.longSocket(""); long != "" { // libvirt finds no QEMU where it cannot talk to one
			lacks = providers.Refuse("libvirt cannot use QEMU: "+long, longSocketNext())
		}
		inv.Missing = map[spec.Kind]*providers.Problem{spec.VM: lacks}
		return
	}
	inv.Host["accel"] = machine.AccelKVM
	if _, why := p.chooseType(machine.AccelAuto, a); why != "" {
		inv.Host["accel"] = machine.AccelTCG + ": " + why
	}
}

// installQEMU is the advice for a host without QEMU.
const installQEMU = "install it: sudo apt-get install qemu-system-x86"

func noQEMU(arch string) string { return "libvirt finds no QEMU for " + arch + " on this host" }
