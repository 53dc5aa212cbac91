package libvirt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// object describes the domain for the planner. k has its record and spec; held has the host
// ports that QEMU holds.
func (p *Provider) object(s observedDomain, k providers.Known, held []machine.Forward, r diskIndex) providers.Object {
	attrs, live := p.attrs(s, k, held, r)
	o := providers.Object{
		Kind: spec.VM, ID: providers.ID(s.UUID), Name: s.Name, State: s.power.State,
		Attrs: attrs, Live: live, Holds: append(s.claims(p.location.URI), r.claims(s)...), Unreadable: map[string]string{},
		Findings: append(s.findings(), s.layerFindings(p.location.URI)...), Fingerprint: s.fingerprint(p.location.URI),
	}
	if f, found := p.keyFinding(s, k); found {
		o.Findings = append(o.Findings, f)
	}
	if m := s.owner(); m != nil {
		o.Owner = &m.Mark
	} else if k.Import != "" {
		o.Holds = append(o.Holds, r.unmarkedClaims(s)...)
	}
	if s.power.Reason == inTransition {
		o.Unreadable["running"] = "libvirt is busy with it: " + s.power.Words
	} else {
		running := s.power.State == providers.StateRunning
		o.Running = &running
		o.HoldsUp = machine.ChosenPorts(held, o.Holds)
	}
	return o
}

// attrs returns the configured attributes, and those that a running domain has with another
// value.
func (p *Provider) attrs(s observedDomain, k providers.Known, held []machine.Forward, r diskIndex) (configured, live cty.Value) {
	of := func(d description) map[string]cty.Value {
		all := d.attrs(r)
		if s.owner() == nil && k.Import != "" {
			all[bootAttr] = p.foreignBootValue(d)
		}
		return all
	}
	all := of(s.configured)
	if s.running != nil {
		live = providers.LiveOf(all, of(*s.running))
	}
	for name, v := range p.computed(s.UUID, s.configured, held) {
		all[name] = v
	}
	for name, v := range imageAttrs(s, k) {
		all[name] = v
	}
	return cty.ObjectVal(all), live
}

func (d description) attrs(r diskIndex) map[string]cty.Value {
	all := map[string]cty.Value{
		"cpus":      cty.NumberUIntVal(d.cpus()),
		"memory":    cty.NumberUIntVal(d.memory()),
		"accel":     cty.StringVal(d.accel()),
		forwardAttr: machine.ForwardsValue(d.wantedForwards()),
		diskAttr:    machine.DisksValue(r.shown(d)),
	}
	marked := markedBoot{}
	if d.Owner != nil {
		marked = d.Owner.Boot
	}
	if d.Kernel == "" && d.Initrd == "" && d.Cmdline == "" && marked.Kernel == "" {
		all[bootAttr] = machine.BootValue(nil)
		return all
	}
	all[bootAttr] = machine.BootValue(&machine.Boot{
		KernelSHA256: digest(d.Kernel, marked.Kernel, marked.KernelSHA256),
		InitrdSHA256: digest(d.Initrd, marked.Initrd, marked.InitrdSHA256),
		Cmdline:      d.Cmdline,
	})
	return all
}

// computed returns the attributes that the system sets.
func (p *Provider) computed(uuid string, d description, held []machine.Forward) map[string]cty.Value {
	ssh := cty.NullVal(cty.Number)
	if port := sshPortOf(held, d); port != 0 {
		ssh = cty.NumberUIntVal(uint64(port))
	}
	var ports []machine.Forward
	for _, f := range d.Forwards {
		f.Host = heldPort(held, f)
		ports = append(ports, f)
	}
	address := cty.StringVal(loopback)
	if d.isForeign() {
		address = cty.NullVal(cty.String)
	}
	return map[string]cty.Value{
		"id": cty.StringVal(uuid), "address": address, "ssh_port": ssh, "ports": machine.PortsValue(ports),
	}
}

// heldPort returns the host port that QEMU holds for a forward, 0 if it holds none.
func heldPort(held []machine.Forward, f machine.Forward) uint16 {
	if f.Fixed() && slices.Contains(held, f) {
		return f.Host
	}
	for _, h := range held {
		if h.Guest == f.Guest && h.HostIP == f.HostIP && h.Protocol == f.Protocol {
			return h.Host
		}
	}
	return 0
}

// sshPortOf returns the host port that leads to the guest's SSH server. It ignores the user's
// own forwards to the same guest port if it can tell them apart.
func sshPortOf(held []machine.Forward, d description) uint16 {
	if d.SSH == nil {
		return 0
	}
	mine := slices.DeleteFunc(slices.Clone(held), func(h machine.Forward) bool { return h.Fixed() && slices.Contains(d.Forwards, h) })
	return heldPort(mine, *d.SSH)
}

// keyFinding returns the finding that this machine lacks the keys of a vm that is ours;
// false: it has them, or the login is unknown.
func (p *Provider) keyFinding(s observedDomain, k providers.Known) (providers.Finding, bool) {
	o := s.owner()
	if o == nil || o.Boot.Keys == "" || !s.oursFor(p.settings.Project, o.Address) {
		return providers.Finding{}, false
	}
	l := machine.DecodeLogin(k.Prior) // the guest has the keys of the record
	if k.Prior == cty.NilVal {
		l = machine.DecodeLogin(k.Want)
	}
	lacks := p.keyFiles(s.UUID, s.Name, l).lacking(o.Boot.Keys, o.HostKey)
	if lacks == "" {
		return providers.Finding{}, false
	}
	return providers.Finding{
		Kind: providers.FindNoKey, Address: o.Address, Object: s.Name, Evidence: []string{lacks},
		Action: "left as it is; vmctl vm rekey " + shellword.Quote(o.Address.String()) + " gives the guest new keys",
	}, true
}

// findings returns the problems of a domain itself.
func (s observedDomain) findings() []providers.Finding {
	var all []providers.Finding
	add := func(kind providers.FindingKind, action string, evidence ...string) {
		f := providers.Finding{Kind: kind, Object: s.Name, Evidence: evidence, Action: action}
		if o := s.owner(); o != nil {
			f.Address = o.Address
		}
		all = append(all, f)
	}
	switch {
	case s.power.Reason == broke && s.power.on():
		add(providers.FindBroken, "", "it is "+s.power.Words)
	case s.power.Reason == broke:
		add(providers.FindCrashed, "", "it is "+s.power.Words)
	}
	if s.power.Reason == asleep {
		add(providers.FindDrift, "woken when it is started, and before it is asked to shut down", "its guest suspended it: it holds its memory and does not answer")
	}
	if s.Saved && !s.power.on() {
		add(providers.FindDirty, "kept until it is started or deleted", "its memory was saved when it was shut off: the next start goes on from there")
	}
	if s.Transient && s.owner() != nil {
		add(providers.FindPartial, "defined again", "it was undefined while it ran: without a definition it is gone when it stops")
	}
	if len(s.lost) > 0 {
		add(providers.FindPartial, uploadedAgain, "it boots from "+strings.Join(s.lost, " and "))
	}
	if o := s.owner(); o != nil && o.Of != providers.ID(s.UUID) {
		add(providers.FindCopy, "left alone", fmt.Sprintf("its mark was written for %s", o.Of))
	}
	return all
}

// foreignBootValue returns the attribute boot of a domain to be imported, with the paths of
// its files.
func (p *Provider) foreignBootValue(d description) cty.Value {
	if d.Kernel == "" {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	b := p.markedBoot(d)
	kernel, initrd, path := b.KernelSHA256, cty.NullVal(cty.String), cty.NullVal(cty.String)
	if kernel == "" {
		kernel = digest(d.Kernel, "", "")
	}
	if d.Initrd != "" {
		initrd, path = cty.StringVal(b.InitrdSHA256), cty.StringVal(d.Initrd)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"kernel": cty.StringVal(d.Kernel), "kernel_sha256": cty.StringVal(kernel),
		"initrd": path, "initrd_sha256": initrd, "cmdline": cty.StringVal(d.Cmdline),
	})
}
