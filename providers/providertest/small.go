package providertest

import (
	"time"

	"github.com/zclconf/go-cty/cty"
)

// VM returns a small VM that boots a kernel and is wanted running.
func VM() cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"name": cty.NullVal(cty.String), "running": cty.True, "cpus": cty.NumberIntVal(1), "memory": cty.NumberIntVal(256 << 20),
		"accel": cty.StringVal("auto"),
		"boot": cty.ObjectVal(map[string]cty.Value{
			"kernel": cty.StringVal("vmlinuz"), "kernel_sha256": cty.StringVal("ab"), "initrd": cty.NullVal(cty.String),
			"initrd_sha256": cty.NullVal(cty.String), "cmdline": cty.StringVal("quiet"),
		}),
		"port_forward":    cty.ListValEmpty(forwarding("auto").Value.Type().ElementType()),
		"additional_disk": cty.ListValEmpty(cty.Object(map[string]cty.Type{"disk": cty.String, "mount_point": cty.String})),
		"ssh": cty.ObjectVal(map[string]cty.Value{
			"user": cty.StringVal("root"), "identity": cty.NullVal(cty.String), "host_key": cty.StringVal("pin"),
		}),
	})
}

// Edits returns edits of VM, each of which a running VM gets at its next start.
func Edits() []Edit {
	return []Edit{
		{Path: "memory", Value: cty.NumberIntVal(320 << 20)},
		{Path: "cpus", Value: cty.NumberIntVal(2)},
		{Path: "accel", Value: cty.StringVal("tcg")},
		forwarding("auto"),
	}
}

// Disk returns a small disk.
func Disk() cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"name": cty.NullVal(cty.String), "size": cty.NumberIntVal(8 << 20), "format": cty.StringVal("qcow2"), "fs_type": cty.NullVal(cty.String),
	})
}

// Waits returns a policy that gives a VM a time to end by itself, and then forces it. Its other
// waits are long enough for a busy machine.
func Waits(grace time.Duration) cty.Value {
	minute := cty.NumberIntVal(60)
	return cty.ObjectVal(map[string]cty.Value{
		"start": cty.ObjectVal(map[string]cty.Value{"timeout": minute}),
		"stop": cty.ObjectVal(map[string]cty.Value{
			"grace": cty.NumberFloatVal(grace.Seconds()), "force": cty.True, "force_wait": minute,
		}),
		"ssh":      cty.ObjectVal(map[string]cty.Value{"wait": cty.True, "wait_timeout": minute}),
		"timeouts": cty.ObjectVal(map[string]cty.Value{"create": minute, "delete": minute}),
		"lifecycle": cty.ObjectVal(map[string]cty.Value{
			"prevent_destroy": cty.False, "on_change": cty.MapValEmpty(cty.String),
		}),
	})
}
