package sim

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// described returns the VM in a spec's words. called returns the planner's name of a disk.
func (s observedVM) described(called func(observedDisk) string) machine.Seen {
	seen := machine.Seen{
		ID: s.ID, Name: s.Name, Mark: s.Owner.mark(), State: s.state, Got: s.gotPorts(), Claims: []providers.Claim{nameClaim(s.Name)},
		Computed: s.computed(), Findings: s.findings(), Digest: s.digest,
	}
	if s.state == "" {
		seen.Unreadable = s.reason
	}
	if !s.onDisk {
		seen.Facts = append(seen.Facts, [2]string{"file", "gone"})
	}
	if !s.root {
		seen.Facts = append(seen.Facts, [2]string{"disk", "gone"})
	}
	if s.lock.verdict != lockFree && s.lock.verdict != lockOwn {
		seen.Facts = append(seen.Facts, [2]string{"disk lock", string(s.lock.verdict)})
	}
	seen.Configured = s.version(s.Config, called)
	if s.on() && s.run != nil {
		seen.Running = s.version(&s.run.With, called)
		delete(seen.Running.Others, "root_disk") // its size is the file's
	}
	return seen
}

// version returns a configuration in a spec's words, nil of a VM that is half made.
func (s observedVM) version(c *config, called func(observedDisk) string) *machine.Config {
	if c == nil {
		return nil
	}
	v := &machine.Config{
		CPUs: c.CPUs, Memory: c.Memory, Accel: c.Accel, Boot: c.Boot, Forwards: c.Forwards, Disks: s.called(c.Disks, called), Files: names(c.Disks),
		Interfaces: s.interfaces(c.Networks),
		Others: map[string]cty.Value{
			"root_disk": cty.NullVal(cty.DynamicPseudoType), "cloud_init": cty.NullVal(cty.DynamicPseudoType),
			"restart_triggers": cty.MapValEmpty(cty.String),
		},
	}
	for _, a := range c.Disks {
		v.DiskIDs = append(v.DiskIDs, providers.ID(s.claimOn(a).Key))
	}
	if c.RootSize > 0 {
		v.Others["root_disk"] = cty.ObjectVal(map[string]cty.Value{"size": cty.NumberUIntVal(c.RootSize)})
	}
	if b := c.CloudInit; b != nil {
		v.Others["cloud_init"] = cty.ObjectVal(map[string]cty.Value{"user_data": textOrNull(b.UserData), "network_config": textOrNull(b.NetworkConfig)})
	}
	if len(c.Triggers) > 0 {
		m := map[string]cty.Value{}
		for key, value := range c.Triggers {
			m[key] = cty.StringVal(value)
		}
		v.Others["restart_triggers"] = cty.MapVal(m)
	}
	return v
}

func textOrNull(s *string) cty.Value {
	if s == nil {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(*s)
}

// called returns disks by their addresses. A disk without an address has its name; a disk that is
// gone is marked so.
func (s observedVM) called(disks []attached, called func(observedDisk) string) []string {
	var all []string
	for _, a := range disks {
		name := a.Name + " (gone)"
		if d, there := s.disks[a.Name]; there && a.is(d) {
			name = called(d)
		}
		all = append(all, name)
	}
	return all
}

// interfaces returns networks by their addresses. One without an address has its name.
func (s observedVM) interfaces(networks []placed) []machine.SeenInterface {
	all := []machine.SeenInterface{}
	for _, n := range networks {
		called := n.Name
		if s.network != nil {
			called = s.network(n)
		}
		all = append(all, machine.SeenInterface{Called: called, Name: n.Name, ID: n.ID, IP: n.IP})
	}
	return all
}

// computed returns the attributes that the host sets. Nobody listens for SSH.
func (s observedVM) computed() map[string]cty.Value {
	address := loopback
	if s.Config != nil && len(s.Config.Networks) > 0 {
		address = s.Config.Networks[0].IP.String()
	}
	return map[string]cty.Value{
		"id": cty.StringVal(string(s.ID)), "address": cty.StringVal(address),
		"ssh_port": cty.NullVal(cty.Number), "ports": machine.PortsValue(s.gotPorts()),
	}
}

// gotPorts returns the forwarded ports of a running VM with the host ports that they got.
func (s observedVM) gotPorts() []machine.Forward {
	if s.state != providers.StateRunning {
		return nil
	}
	var all []machine.Forward
	for _, h := range s.run.Ports {
		all = append(all, h.got())
	}
	return all
}

// lockFinding returns the problem of the lock of a VM's disk, if it has one.
func (s observedVM) lockFinding() []providers.Finding {
	f := providers.Finding{Object: s.Name, Claim: lockClaim(s.Name), Evidence: []string{s.lock.evidence}}
	if s.Owner != nil {
		f.Address = s.Owner.Address
	}
	switch {
	case s.lock.verdict == lockStale && s.state == providers.StateOff:
		f.Kind, f.Action = providers.FindStaleLock, "released before it is started or deleted"
	case s.lock.verdict == lockStale:
		f.Kind, f.Action = providers.FindStaleLock, "released when it is stopped"
	case s.lock.verdict == lockHeld:
		f.Kind, f.Action = providers.FindHeldLock, "left alone: its holder has to end first"
	default:
		return nil
	}
	return []providers.Finding{f}
}

// findings returns the problems of a VM itself.
func (s observedVM) findings() []providers.Finding {
	var all []providers.Finding
	add := func(kind providers.FindingKind, action, evidence string) {
		f := providers.Finding{Kind: kind, Object: s.Name, Evidence: []string{evidence}, Action: action}
		if s.Owner != nil {
			f.Address = s.Owner.Address
		}
		all = append(all, f)
	}
	if s.state == providers.StateBroken {
		add(providers.FindBroken, "", s.reason)
	}
	if s.leftover != "" && s.state == providers.StateOff {
		add(providers.FindLeftover, "removed when it is started or deleted", s.leftover)
	}
	switch {
	case s.Config == nil:
		add(providers.FindPartial, "completed when it is changed or started", "it is half made: it has no configuration")
	case !s.root && s.Owner != nil && s.state != stateUnknown:
		add(providers.FindBroken, "", "its disk is gone")
	}
	all = append(all, s.lockFinding()...)
	return all
}
