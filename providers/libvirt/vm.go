package libvirt

import (
	"fmt"
	"net/netip"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers/machine"
)

const (
	bootAttr    = "boot"
	forwardAttr = "port_forward"
	diskAttr    = "additional_disk"
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
