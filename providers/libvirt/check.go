package libvirt

import (
	"fmt"
	"net/netip"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/nocloud"
	"vmctl/internal/sshx"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// check returns the flaws of a vm, a disk or a network that libvirt could never make.
func check(kind spec.Kind, want cty.Value) []spec.Flaw {
	switch kind { //nolint:exhaustive // it has no other kinds
	case spec.Disk:
		return machine.WholeSectors(want, "size")
	case spec.Network:
		return nil
	}
	flaws := machine.WholeSectors(ctyread.Attr(want, rootAttr), rootAttr+".size")
	if bootless(want) {
		flaws = append(flaws, spec.Flaw{
			Summary: "Nothing to boot",
			Detail:  "A VM boots from something: set `image`, add a `boot` block that sets `kernel`, or an `additional_disk` with a system on it.",
		})
	}
	flaws = append(flaws, machine.NoMounts(want, "Provider libvirt does not support `mount_point`: it reaches into no guest. Mount the disk in the guest, "+
		"where its serial number is the name of the `disk` block: /dev/disk/by-id/virtio-NAME.")...)
	if cpus, most := ctyread.Uint(want, "cpus"), mostCPUs(); cpus > most {
		flaws = append(flaws, spec.Flaw{
			Path: "cpus", Summary: "Too many CPUs",
			Detail: fmt.Sprintf("No machine of QEMU has %d CPUs: %d are the most, on any host.", cpus, most),
		})
	}
	flaws = append(flaws, checkSeed(want)...)
	flaws = append(flaws, checkOthers(want)...)
	if f := ctyread.Attr(want, forwardAttr); f != cty.NilVal && f.IsWhollyKnown() {
		if err := checkForwards(f); err != nil {
			flaws = append(flaws, spec.Flaw{
				Path: forwardAttr, Summary: "Impossible port_forward", Detail: fmt.Sprintf("The ports cannot be forwarded: %v.", err),
			})
		}
	}
	return flaws
}

// checkOthers returns a flaw for each line of other people's keys that is no public key.
func checkOthers(want cty.Value) []spec.Flaw {
	var flaws []spec.Flaw
	for i, line := range ctyread.List(ctyread.Attr(ctyread.Attr(want, "ssh"), "authorized_keys")) {
		if !line.IsKnown() {
			continue
		}
		key := ""
		if ctyread.Known(line) {
			key = line.AsString()
		}
		if err := sshx.CheckAuthorized(key); err != nil {
			flaws = append(flaws, spec.Flaw{
				Path: othersAttr, Summary: "No public key",
				Detail: fmt.Sprintf("The element %d of `authorized_keys` %v.", i, err),
			})
		}
	}
	return flaws
}

// mostCPUs returns the number of CPUs of the largest board. Only the host decides which board
// it builds.
func mostCPUs() uint64 {
	var most uint64
	for _, b := range boards {
		most = max(most, b.CPUs)
	}
	return most
}

// bootless reports whether a vm certainly has nothing to boot from.
func bootless(want cty.Value) bool {
	for _, name := range []string{bootAttr, "image", diskAttr} {
		v := ctyread.Attr(want, name)
		if v != cty.NilVal && (!v.IsKnown() || ctyread.Known(v) && (name != diskAttr || v.LengthInt() > 0)) {
			return false
		}
	}
	return true
}

// checkSeed returns the flaws of the texts that cloud-init would ignore.
func checkSeed(want cty.Value) []spec.Flaw {
	seed := ctyread.Attr(want, seedAttr)
	if !ctyread.Known(seed) {
		return nil
	}
	if i := ctyread.Attr(want, imageAttr); i != cty.NilVal && i.IsKnown() && i.IsNull() {
		return []spec.Flaw{{
			Path: seedAttr, Summary: "Nothing reads cloud_init",
			Detail: "Only a guest that begins as an image is set up by cloud-init: set `image`, or remove the block.",
		}}
	}
	var flaws []spec.Flaw
	if err := nocloud.Check(ctyread.Text(seed, "user_data")); err != nil {
		flaws = append(flaws, spec.Flaw{
			Path: seedAttr + ".user_data", Summary: "Unusable user_data", Detail: fmt.Sprintf("cloud-init cannot use it: %v.", err),
		})
	}
	if err := nocloud.CheckNetworkConfig(ctyread.Text(seed, "network_config")); err != nil {
		flaws = append(flaws, spec.Flaw{
			Path: seedAttr + ".network_config", Summary: "Unusable network_config", Detail: fmt.Sprintf("cloud-init cannot use it: %v.", err),
		})
	}
	return flaws
}

const (
	bootAttr    = "boot"
	forwardAttr = "port_forward"
	diskAttr    = "additional_disk"
	networkAttr = "network_interface"
	imageAttr   = "image"
	rootAttr    = "root_disk"
	seedAttr    = "cloud_init"

	identityAttr = "ssh.identity"
	othersAttr   = "ssh.authorized_keys"
)

// decode reads the attributes of a vm.
func decode(v cty.Value) (machine.VM, error) {
	vm, err := machine.Decode(v)
	if err == nil {
		err = checkForwards(ctyread.Attr(v, forwardAttr))
	}
	return vm, err
}

// checkForwards fails for forwarded ports that QEMU's user network does not support.
func checkForwards(v cty.Value) error {
	all, err := machine.DecodeForwards(v)
	if err != nil {
		return err
	}
	for _, f := range all {
		if ip, err := netip.ParseAddr(f.HostIP); err == nil && !ip.Is4() {
			return fmt.Errorf("port_forward.host_ip = %q: QEMU's user network forwards IPv4 addresses only", f.HostIP)
		}
	}
	return nil
}
