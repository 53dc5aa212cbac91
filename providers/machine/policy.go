// Package machine defines a VM and a disk for every system: the policy by which vmctl treats
// them, and the steps of a change.
package machine

import (
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
)

// Policy holds the waits and the choices by which vmctl treats a VM or a disk.
type Policy struct {
	Create, Delete   time.Duration // how long making and removing it may take
	Start, Ready     time.Duration // how long a start may take, and until it is ready
	Grace, ForceWait time.Duration // after the request to end, and after it was forced
	Force            bool          // whether it is forced after Grace
	Wait             bool          // whether apply waits until it is ready
}

// DecodePolicy reads a policy. A missing value becomes the spec's default.
func DecodePolicy(v cty.Value) Policy {
	timeouts, start, stop, ssh := ctyread.Attr(v, "timeouts"), ctyread.Attr(v, "start"), ctyread.Attr(v, "stop"), ctyread.Attr(v, "ssh")
	p := Policy{
		Create:    ctyread.Seconds(timeouts, "create", 30*time.Minute),
		Delete:    ctyread.Seconds(timeouts, "delete", 2*time.Minute),
		Start:     ctyread.Seconds(start, "timeout", 10*time.Minute),
		Ready:     ctyread.Seconds(ssh, "wait_timeout", 5*time.Minute),
		Grace:     ctyread.Seconds(stop, "grace", 30*time.Second),
		ForceWait: ctyread.Seconds(stop, "force_wait", 10*time.Second),
		Force:     true, Wait: true,
	}
	if force := ctyread.KnownAttr(stop, "force"); force != cty.NilVal {
		p.Force = force.True()
	}
	if wait := ctyread.KnownAttr(ssh, "wait"); wait != cty.NilVal {
		p.Wait = wait.True()
	}
	return p
}
