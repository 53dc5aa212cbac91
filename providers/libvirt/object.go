package libvirt

import (
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// object describes the domain for the planner. k has its record and spec; held has the host
// ports that QEMU holds.
func (p *Provider) object(s observedDomain, k providers.Known, held []machine.Forward, r diskIndex) providers.Object {
	seen := s.described(p.location.URI, r)
	seen.Got, seen.Computed = held, p.computed(s.UUID, s.configured, held)
	maps.Copy(seen.Computed, s.imageAttrs())
	seen.Claims = append(seen.Claims, r.claims(s)...)
	seen.Findings = append(s.findings(), s.layerFindings(p.location.URI, r.files)...)
	seen.Findings = append(seen.Findings, r.networks.findings(s)...)
	if f, found := p.keyFinding(s, k); found {
		seen.Findings = append(seen.Findings, f)
	}
	relied := seen.Fingerprint() // no step relies on the networks that others put it into, or on what an import would make of it
	seen.Claims = append(seen.Claims, r.networks.claims(s)...)
	if s.owner() != nil || k.Address == (spec.Address{}) {
		o := seen.Object()
		o.Fingerprint = relied
		return o
	}
	seen.Claims = append(seen.Claims, r.unmarkedClaims(s)...)
	seen.Configured.Others = map[string]cty.Value{bootAttr: p.foreignBootValue(s.configured)}
	if seen.Running != nil {
		seen.Running.Others = map[string]cty.Value{bootAttr: p.foreignBootValue(*s.running)}
	}
	o := seen.Object()
	o.Fingerprint = relied
	return o
}

// described returns the domain in a spec's words.
func (s observedDomain) described(uri string, r diskIndex) machine.Seen {
	seen := machine.Seen{
		ID: providers.ID(s.UUID), Name: s.Name, State: s.power.State, Claims: []providers.Claim{nameClaim(uri, s.Name)},
		Configured: s.configured.config(r), Power: s.power.counted(), Words: s.power.Words,
	}
	if o := s.owner(); o != nil {
		seen.Mark = &o.Mark
	}
	if s.running != nil {
		seen.Running = s.running.config(r)
	}
	seen.Volatile = seen.Configured != nil && seen.Configured.Boot != nil
	if s.power.unsettled() {
		seen.Unreadable = "libvirt is busy with it: " + s.power.Words
	}
	for _, file := range s.mark().ownFiles() {
		seen.Facts = append(seen.Facts, [2]string{"own disk", file})
	}
	for _, l := range s.layers(uri, r.files) {
		seen.Facts = append(seen.Facts, [2]string{"layer", l.what})
	}
	return seen
}

// config returns a version of the domain in a spec's words.
func (d description) config(r diskIndex) *machine.Config {
	c := &machine.Config{
		CPUs: d.cpus(), Memory: d.memory(), Accel: d.accel(), Forwards: d.wantedForwards(), Disks: r.shown(d), Booted: []string{d.Kernel, d.Initrd},
	}
	for _, drive := range d.disks(r.files) {
		c.Files = append(c.Files, drive.file())
	}
	if !d.isForeign() { // its cards are its own
		c.Interfaces = r.networks.interfaces(d)
	}
	if marked := d.mark().Boot; d.Kernel != "" || d.Initrd != "" || d.Cmdline != "" || marked.Kernel != "" {
		c.Boot = &machine.Boot{
			KernelSHA256: digest(d.Kernel, marked.Kernel, marked.KernelSHA256),
			InitrdSHA256: digest(d.Initrd, marked.Initrd, marked.InitrdSHA256),
			Cmdline:      d.Cmdline,
		}
	}
	return c
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
	if all := d.places(); len(all) > 0 {
		address = cty.StringVal(all[0].IP.String())
	}
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
		Action: "left as it is", Next: providers.SayVmctl("to give the guest new keys: ", "vm", "rekey", o.Address.String()),
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
	if s.root != nil && s.root.gone {
		add(providers.FindMissing, "made again from its image, if it may be replaced", "its root disk "+s.mark().Image.Root+" is gone")
	}
	if len(s.lost) > 0 {
		add(providers.FindPartial, "uploaded again", "it boots from "+strings.Join(s.lost, " and "))
		all[len(all)-1].Attr = bootAttr
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
