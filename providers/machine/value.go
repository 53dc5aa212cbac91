package machine

import (
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

// ForwardsValue returns forwarded ports as the attribute port_forward.
func ForwardsValue(all []Forward) cty.Value {
	if len(all) == 0 {
		return cty.ListValEmpty(cty.Object(map[string]cty.Type{
			"guest": cty.Number, "host": cty.String, "host_ip": cty.String, "protocol": cty.String,
		}))
	}
	var values []cty.Value
	for _, f := range all {
		host := autoPort
		if f.Fixed() {
			host = strconv.Itoa(int(f.Host))
		}
		values = append(values, cty.ObjectVal(map[string]cty.Value{
			"guest": cty.NumberUIntVal(uint64(f.Guest)), "host": cty.StringVal(host),
			"host_ip": cty.StringVal(f.HostIP), "protocol": cty.StringVal(f.Protocol),
		}))
	}
	return cty.ListVal(values)
}

// DisksValue returns disks, as addresses or in words, as the attribute additional_disk. mounts has the
// path at which the guest mounts each, "" for none; nil: it mounts none of them.
func DisksValue(disks, mounts []string) cty.Value {
	if len(disks) == 0 {
		return cty.ListValEmpty(cty.Object(map[string]cty.Type{"disk": cty.String, "mount_point": cty.String}))
	}
	var values []cty.Value
	for i, disk := range disks {
		at := cty.NullVal(cty.String)
		if mounts != nil && mounts[i] != "" {
			at = cty.StringVal(mounts[i])
		}
		values = append(values, cty.ObjectVal(map[string]cty.Value{"disk": cty.StringVal(disk), "mount_point": at}))
	}
	return cty.ListVal(values)
}

// BootValue returns a VM's boot files as the attribute boot, without their paths: the same
// content is the same boot, wherever the files are. A nil Boot is null.
func BootValue(b *Boot) cty.Value {
	if b == nil {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	initrd := cty.NullVal(cty.String)
	if b.InitrdSHA256 != "" {
		initrd = cty.StringVal(b.InitrdSHA256)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"kernel_sha256": cty.StringVal(b.KernelSHA256), "initrd_sha256": initrd, "cmdline": cty.StringVal(b.Cmdline),
	})
}

// PortsValue returns the host ports by forwarded guest port as the attribute ports. Where a
// guest port is forwarded for both protocols, the host port is that of TCP. A host port of 0
// counts as none.
func PortsValue(held []Forward) cty.Value {
	ports := map[string]cty.Value{}
	for _, protocol := range []string{UDP, TCP} {
		for _, f := range held {
			if f.Protocol == protocol && f.Fixed() {
				ports[strconv.Itoa(int(f.Guest))] = cty.NumberUIntVal(uint64(f.Host))
			}
		}
	}
	if len(ports) == 0 {
		return cty.MapValEmpty(cty.Number)
	}
	return cty.MapVal(ports)
}
