package sim

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// object describes the VM for the planner. called returns the planner's name of a disk.
func (s observedVM) object(called func(observedDisk) string) providers.Object {
	attrs, live := s.attrs(called)
	o := providers.Object{
		Kind: spec.VM, ID: s.ID, Name: s.Name, State: s.state, Owner: s.Owner.mark(),
		Attrs: attrs, Live: live, Holds: s.claims(), Unreadable: map[string]string{},
		Findings: s.findings(), Fingerprint: s.fingerprint(),
	}
	if s.state == "" {
		o.Unreadable["running"] = s.reason
		return o
	}
	running := s.state == providers.StateRunning
	o.Running = &running
	o.HoldsUp = machine.ChosenPorts(s.gotPorts(), o.Holds)
	return o
}

// attrs returns the configured attributes, and those that a running VM has with another
// value.
func (s observedVM) attrs(called func(observedDisk) string) (configured, live cty.Value) {
	all := s.Config.attrs()
	if s.Config != nil {
		all["additional_disk"] = s.disksValue(s.Config.Disks, called)
	}
	if s.on() && s.run != nil {
		running := s.run.With.attrs()
		running["additional_disk"] = s.disksValue(s.run.With.Disks, called)
		delete(running, "root_disk") // its size is the file's
		live = providers.LiveOf(all, running)
	}
	for name, v := range s.computed() {
		all[name] = v
	}
	return cty.ObjectVal(all), live
}

// attrs returns the attributes of a configuration. A VM that is half made has no cpus and no
// memory, which every VM has.
func (c *config) attrs() map[string]cty.Value {
	if c == nil {
		return map[string]cty.Value{"cpus": cty.NullVal(cty.Number), "memory": cty.NullVal(cty.Number)}
	}
	all := map[string]cty.Value{
		"cpus":         cty.NumberUIntVal(c.CPUs),
		"memory":       cty.NumberUIntVal(c.Memory),
		"accel":        cty.StringVal(c.Accel),
		"port_forward": machine.ForwardsValue(c.Forwards),
		"boot":         machine.BootValue(c.Boot),
		"root_disk":    cty.NullVal(cty.DynamicPseudoType),
		"cloud_init":   cty.NullVal(cty.DynamicPseudoType),

		"restart_triggers": cty.MapValEmpty(cty.String),
	}
	if c.RootSize > 0 {
		all["root_disk"] = cty.ObjectVal(map[string]cty.Value{"size": cty.NumberUIntVal(c.RootSize)})
	}
	if b := c.CloudInit; b != nil {
		all["cloud_init"] = cty.ObjectVal(map[string]cty.Value{"user_data": textOrNull(b.UserData), "network_config": textOrNull(b.NetworkConfig)})
	}
	if len(c.Triggers) > 0 {
		m := map[string]cty.Value{}
		for key, value := range c.Triggers {
			m[key] = cty.StringVal(value)
		}
		all["restart_triggers"] = cty.MapVal(m)
	}
	return all
}

func textOrNull(s *string) cty.Value {
	if s == nil {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(*s)
}

// disksValue returns disks as the attribute additional_disk, by their addresses. A disk
// without an address has its name; a disk that is gone is marked so.
func (s observedVM) disksValue(disks []attached, called func(observedDisk) string) cty.Value {
	var all []string
	for _, a := range disks {
		name := a.Name + " (gone)"
		if d, there := s.disks[a.Name]; there && a.is(d) {
			name = called(d)
		}
		all = append(all, name)
	}
	return machine.DisksValue(all)
}

// computed returns the attributes that the host sets. Nobody listens for SSH.
func (s observedVM) computed() map[string]cty.Value {
	return map[string]cty.Value{
		"id": cty.StringVal(string(s.ID)), "address": cty.StringVal(loopback),
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
	if s.Owner != nil && s.Owner.Of != s.ID {
		add(providers.FindCopy, "left alone", "its mark was written for "+string(s.Owner.Of))
	}
	return all
}
