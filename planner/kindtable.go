package planner

import (
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

// nature holds what the planner has to know of a kind beyond its shape. The zero value is that of an object without power which
// vmctl makes and removes, and in which nothing runs.
type nature struct {
	endsWork   []providers.Phase // the phases of steps that end what runs in the object
	endsAround bool              // what runs in it may be interrupted with the VM around it alone
	runs       bool              // with power: it is a machine of its own, with its own ports and commands
	command    string            // the group of vmctl's commands that start and stop it; "": there are none
	isDisk     bool              // objects take it with a claim on a disk
	takesDisks bool              // it may have disks, which cannot be told while it cannot be read
	isFound    bool              // vmctl neither makes nor removes it: it connects to what is there
	isNamed    bool              // its name is all that tells it from others
	stateAttr  string            // the attribute with its run state, where a command may ask for another; "": there is none
	manual     bool              // its user runs it, unless its policy says run = "once"
	publishes  string            // the block with ports of the machine that it is on, at which it listens; "": there is none
	forwards   string            // the block with ports of this host that lead into it; "": there is none
	prefix     string            // the attribute with the prefix from which it gives addresses to others, without which it gives none; "": there is none
	interfaces string            // the block with its places in objects that give addresses; "": it has none
	runsIn     spec.Kind         // the kind of the object in which it runs; "": it runs nothing
}

var natures = map[spec.Kind]nature{
	spec.VM: {
		runs: true, command: "vm", takesDisks: true, forwards: "port_forward", interfaces: "network_interface",
		endsWork: []providers.Phase{providers.PhaseDown, providers.PhaseRecover},
	},
	spec.Disk:      {isDisk: true},
	spec.Workspace: {endsWork: []providers.Phase{providers.PhaseRemove}, endsAround: true},
	spec.Job:       {manual: true, runsIn: spec.Workspace},
	spec.Engine:    {isFound: true},
	spec.Image:     {isNamed: true},
	spec.Network:   {prefix: "cidr"},
	spec.Container: {stateAttr: "state", publishes: "port"},
}

// workplace returns the object in which a resource of a kind runs, one of those that it uses; zero: there is none.
func workplace(kind spec.Kind, uses []spec.Address) spec.Address {
	in := natures[kind].runsIn
	if i := slices.IndexFunc(uses, func(a spec.Address) bool { return in != "" && a.Kind == in }); i >= 0 {
		return uses[i]
	}
	return spec.Address{}
}

// IsInhabited reports whether other resources are inside of the objects of a kind, or run in them.
func IsInhabited(kind spec.Kind) bool {
	if len(spec.InsideOf(kind)) > 0 {
		return true
	}
	for _, n := range natures {
		if n.runsIn == kind {
			return true
		}
	}
	return false
}
