package planner

import (
	"fmt"
	"net/netip"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
)

// warnUnreached warns of ports of VMs that a plan publishes and to which no forwarded port leads.
func (o *orderer) warnUnreached() {
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		block := natures[c.Kind].publishes
		if block == "" || c.Want == nil || !o.active(i) || c.Action == providers.NoOp || c.Action == providers.Destroy || c.Action == providers.Forget {
			continue
		}
		vm, planned := o.index[o.vmOf(c, wantedSite)]
		if !planned || o.plan.Changes[vm].Want == nil {
			continue
		}
		for _, port := range blocksOf(c.Want.Want, block) {
			if why := o.unreached(&o.plan.Changes[vm], port); why != "" {
				c.Warnings = append(c.Warnings[:len(c.Warnings):len(c.Warnings)], why)
			}
		}
	}
}

// unreached returns why no forwarded port of a VM leads to a port that something inside publishes; "": one does, or the system of the
// VM forwards none.
func (o *orderer) unreached(vm *Change, port cty.Value) string {
	typ := o.world.System(vm.Aim().System).typ
	block := natures[vm.Kind].forwards
	if _, can := typ.Kinds[vm.Kind][block]; !can {
		return ""
	}
	number, protocol := ctyread.Attr(port, "host"), ctyread.Attr(port, "protocol")
	if !ctyread.Known(number) || !ctyread.Known(protocol) {
		return ""
	}
	text := number.AsBigFloat().Text('f', -1)
	for _, forward := range blocksOf(vm.Want.Want, block) {
		guest, by := ctyread.Attr(forward, "guest"), ctyread.Attr(forward, "protocol")
		if !ctyread.Known(guest) || !ctyread.Known(by) {
			return ""
		}
		if guest.RawEquals(number) && by.RawEquals(protocol) {
			ip, err := netip.ParseAddr(ctyread.Text(port, "host_ip"))
			if err != nil || !ip.IsLoopback() || typ.ForwardsToLoopback {
				return ""
			}
			return fmt.Sprintf("port %s listens on %s of %s, where no %s leads: write host_ip = \"0.0.0.0\" into the port", text, ip, vm.Address, block)
		}
	}
	return fmt.Sprintf("no %s of %s leads to its port %s: nothing outside of the VM reaches it", block, vm.Address, text)
}

// blocksOf returns the values of a repeated block, none while they are not known.
func blocksOf(want cty.Value, name string) []cty.Value {
	list := ctyread.Attr(want, name)
	if !ctyread.Known(list) {
		return nil
	}
	return list.AsValueSlice()
}
