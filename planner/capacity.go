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
// host more memory than it has, unless the provider block allows it with overcommit. VMs that have run and do not grow
// count first, then the others by address. Processors are shared in time: their sum does not
// count.
func (d *differ) capacity(all []spec.Address) {
	if d.options.Destroy || d.options.Heal {
		return
	}
	used := map[string]uint64{} // memory, by system
	var grows []*Change
	for _, a := range all {
		c := d.decided[a]
		switch {
		case !natures[c.Kind].runs:
		case d.takesMore(c):
			grows = append(grows, c)
		default:
			used[c.Aim().System] += d.memoryThen(c)
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

// everyHost is the number of processors that a VM may have on any host: the default of a block.
const everyHost = 2

// overCapacity returns the reason for which a host cannot carry a VM that is made or that grows; "": it can. memory is that of
// all VMs that would run on the host.
func overCapacity(c *Change, host providers.Capacity, memory uint64) string {
	cpus, own := c.grown("cpus"), c.grown("memory")
	switch {
	case host.CPUs > 0 && cpus > max(host.CPUs, everyHost):
		return fmt.Sprintf("it wants %d CPUs, and its host has %d", cpus, host.CPUs)
	case host.Memory > 0 && own > host.Memory:
		return fmt.Sprintf("it wants %s of memory, and its host has %s", size(own), size(host.Memory))
	case own > 0 && host.Memory > 0 && memory > host.Memory:
		return fmt.Sprintf("with it, the VMs that should run on its host want %s of memory, and the host has %s", size(memory), size(host.Memory))
	}
	return ""
}

// grown returns an amount that a VM is to have, if it has never run with as much on its host; else 0.
func (c *Change) grown(attr string) uint64 {
	want := ctyread.Uint(c.Change.Want, attr)
	hasRun := c.Record == nil || c.Record.Starts > 0 || c.memoryNow() > 0
	if c.Object != nil && c.To == nil && hasRun && want <= max(ctyread.Uint(c.Object.Attrs, attr), ctyread.Uint(c.Object.Now(), attr)) {
		return 0
	}
	return want
}

// size writes an amount of memory as a spec would, but rounds one that is no number of MiB.
func size(bytes uint64) string {
	if bytes >= 1<<30 && bytes%(1<<20) != 0 {
		return fmt.Sprintf("%.1fGiB", float64(bytes)/(1<<30))
	}
	return spec.FormatSize(int64(bytes)) //nolint:gosec // memory of a host or a VM
}

// takesMore reports whether a change can go on, and makes a VM that is to run or lets one grow. One that has run, and is off or
// on now, may run as it is: the host carried it before.
func (d *differ) takesMore(c *Change) bool {
	return c.Blocked == nil && d.scope[c.Address] && d.willRun(c) && c.grown("cpus")+c.grown("memory") > 0
}

// memoryNow returns the memory with which a VM runs; 0: it does not run.
func (c *Change) memoryNow() uint64 {
	if c.Object == nil || c.Object.Running == nil || !*c.Object.Running {
		return 0
	}
	return ctyread.Uint(c.Object.Now(), "memory")
}

// memoryThen returns the memory with which a VM will run. One that cannot be read may run as it is recorded.
func (d *differ) memoryThen(c *Change) uint64 {
	switch {
	case c.isUnread() && c.Record != nil && ctyread.True(c.Record.Values, "running"):
		return max(c.memoryNow(), ctyread.Uint(c.Record.Values, "memory"))
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
