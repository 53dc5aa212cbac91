// Package machine is what a VM and a disk are for every system: how vmctl treats
// them, and in which steps a change of them is made.
package machine

import (
	"time"

	"github.com/zclconf/go-cty/cty"
)

// Policy is how vmctl treats a VM or a disk.
type Policy struct {
	Create, Delete   time.Duration // how long making and removing it may take
	Start, Ready     time.Duration // how long a start may take, and until it is ready
	Grace, ForceWait time.Duration // after the request to end, and after it was forced
	Force            bool          // whether it is forced after Grace
	Wait             bool          // whether apply waits until it is ready
}

// DecodePolicy reads a policy. What it does not say has the spec's default.
func DecodePolicy(v cty.Value) Policy {
	p := Policy{
		Create: 30 * time.Minute, Delete: 2 * time.Minute, Start: 10 * time.Minute, Ready: 5 * time.Minute,
		Grace: 30 * time.Second, ForceWait: 10 * time.Second, Force: true, Wait: true,
	}
	for _, part := range []struct {
		into        *time.Duration
		block, name string
	}{
		{&p.Create, "timeouts", "create"},
		{&p.Delete, "timeouts", "delete"},
		{&p.Start, "start", "timeout"},
		{&p.Ready, "ssh", "wait_timeout"},
		{&p.Grace, "stop", "grace"},
		{&p.ForceWait, "stop", "force_wait"},
	} {
		if n := inBlock(v, part.block, part.name); isKnown(n) && n.Type() == cty.Number {
			seconds, _ := n.AsBigFloat().Float64()
			*part.into = time.Duration(seconds * float64(time.Second))
		}
	}
	if force := inBlock(v, "stop", "force"); isKnown(force) {
		p.Force = force.True()
	}
	if wait := inBlock(v, "ssh", "wait"); isKnown(wait) {
		p.Wait = wait.True()
	}
	return p
}

// inBlock is an attribute of a block, NilVal where there is none.
func inBlock(v cty.Value, block, name string) cty.Value {
	return attribute(attribute(v, block), name)
}

// attribute is an attribute of an object, cty.NilVal where there is none.
func attribute(v cty.Value, name string) cty.Value {
	if !isKnown(v) || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	return v.GetAttr(name)
}

func isKnown(v cty.Value) bool { return v != cty.NilVal && v.IsKnown() && !v.IsNull() }
