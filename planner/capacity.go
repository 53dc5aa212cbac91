package planner

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// capacity blocks changes after which a VM would have more processors than its host, or the VMs of a
// host more memory than it has, unless the provider block allows it with overcommit. VMs that stay as
// they are count first, then the others by address. Processors are shared in time: their sum does not
// count.
func (d *differ) capacity(all []spec.Address) {
	if d.options.Destroy || d.options.Heal {
		return
	}
	used := map[string]uint64{} // memory, by system
	var grows []*Change
	for _, a := range all {
		c := d.decided[a]
		switch now, then := c.memoryNow(), d.memoryThen(c); {
		case !natures[c.Kind].runs:
		case d.takesMore(c, now, then):
			grows = append(grows, c)
		default:
			used[c.Aim().System] += then
		}
	}
	for _, c := range grows {
		system := c.Aim().System
		host, then := d.world.systems[system].Inventory.Capacity, d.memoryThen(c)
		if why := overCapacity(c, host, used[system]+then); why != "" && !d.overcommits(c) {
			c.Blocked = &Block{Cause: CauseCapacity, Problem: providers.Refuse(why, providers.Say(
				fmt.Sprintf("give it less, or write overcommit = true into the block of %s", c.Want.Provider)))}
			used[system] += c.memoryNow()
			continue
		}
		used[system] += then
	}
}

// overCapacity returns the reason for which a host cannot carry a VM; "": it can. memory is that of all
// VMs that would run on the host.
func overCapacity(c *Change, host providers.Capacity, memory uint64) string {
	cpus, own := ctyread.Uint(c.Change.Want, "cpus"), ctyread.Uint(c.Change.Want, "memory")
	switch {
	case host.CPUs > 0 && cpus > host.CPUs:
		return fmt.Sprintf("it wants %d CPUs, and its host has %d", cpus, host.CPUs)
	case host.Memory > 0 && own > host.Memory:
		return fmt.Sprintf("it wants %s of memory, and its host has %s", size(own), size(host.Memory))
	case host.Memory > 0 && memory > host.Memory:
		return fmt.Sprintf("with it, the VMs that should run on its host want %s of memory, and the host has %s", size(memory), size(host.Memory))
	}
	return ""
}

// size writes an amount of memory as a spec would, but rounds one that is no number of MiB.
func size(bytes uint64) string {
	if bytes >= 1<<30 && bytes%(1<<20) != 0 {
		return fmt.Sprintf("%.1fGiB", float64(bytes)/(1<<30))
	}
	return spec.FormatSize(int64(bytes)) //nolint:gosec // memory of a host or a VM
}

// takesMore reports whether a change can go on and lets a VM run with more memory or processors than it runs with now.
func (d *differ) takesMore(c *Change, now, then uint64) bool {
	if c.Blocked != nil || !d.scope[c.Address] || !d.willRun(c) {
		return false
	}
	if c.Object == nil || c.Object.Running == nil || !*c.Object.Running || c.To != nil {
		return true
	}
	return then > now || ctyread.Uint(c.Change.Want, "cpus") > ctyread.Uint(c.Object.Now(), "cpus")
}

// memoryNow returns the memory with which a VM runs; 0: it does not run.
func (c *Change) memoryNow() uint64 {
	if c.Object == nil || c.Object.Running == nil || !*c.Object.Running {
		return 0
	}
	return ctyread.Uint(c.Object.Now(), "memory")
}

// memoryThen returns the memory with which a VM will run.
func (d *differ) memoryThen(c *Change) uint64 {
	switch {
	case c.Blocked != nil || !d.scope[c.Address] || c.Action == providers.Forget:
		return c.memoryNow()
	case !d.willRun(c):
		return 0
	default:
		return ctyread.Uint(c.Change.Want, "memory")
	}
}

// willRun reports whether a VM is wanted and is to run.
func (d *differ) willRun(c *Change) bool {
	return c.Want != nil && c.Action != providers.Destroy && c.Change.Want != cty.NilVal && d.wantsRunning(c)
}

// overcommits reports whether the provider block of a change allows more than its host has.
func (d *differ) overcommits(c *Change) bool {
	i := slices.IndexFunc(d.config.Providers, func(p spec.Provider) bool { return p.Ref == c.Want.Provider })
	return i >= 0 && ctyread.True(d.config.Providers[i].Attrs, "overcommit")
}
