package providertest

import (
	"regexp"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

// effects has a row for each attribute that a provider acts on.
var effects = []effect{
	{kind: spec.VM, path: "name", on: onImage, values: texts("vmctl-one", "vmctl-two"), shows: named},
	{kind: spec.VM, path: "running", on: onKernel, values: fixed(cty.True, cty.False), shows: runs},
	{kind: spec.VM, path: "cpus", on: onKernel, values: numbers(1, 2)},
	{kind: spec.VM, path: "memory", on: onKernel, values: numbers(8<<30, 256<<20)},
	{kind: spec.VM, path: "accel", on: onKernel, values: texts("tcg", "auto")},
	{kind: spec.VM, path: "restart_triggers", on: onKernel, values: fixed(triggers("one"), triggers("two")), acts: restarts},

	{kind: spec.VM, path: "boot.kernel", on: onKernel, values: bootFiles("kernel"), shows: digested},
	{kind: spec.VM, path: "boot.initrd", on: onKernel, values: bootFiles("initrd"), shows: digested},
	{kind: spec.VM, path: "boot.cmdline", on: onKernel, values: cmdlines},

	{kind: spec.VM, path: "image.source", on: onImage, values: images, shows: madeFrom},
	{kind: spec.VM, path: "image.sha256", on: onImage, values: digests, acts: rejectsOthers},
	{kind: spec.VM, path: "root_disk.size", on: onImage, values: numbers(64<<20, 96<<20)},
	{kind: spec.VM, path: "cloud_init.user_data", on: onImage, values: texts("#cloud-config\nruncmd: [one]\n", "#cloud-config\nruncmd: [two]\n"), says: contains},
	{kind: spec.VM, path: "cloud_init.network_config", on: onImage, values: texts("ethernets: {one: {dhcp4: true}}\n", "ethernets: {two: {dhcp4: true}}\n"), says: contains},

	{kind: spec.VM, path: "additional_disk.disk", on: onKernel, values: texts("disk.one", "disk.two"), shows: holdsDisk},
	{kind: spec.VM, path: "additional_disk.mount_point", on: onKernel, values: texts("/one", "/two")},
	{kind: spec.VM, path: "port_forward.guest", on: onKernel, values: numbers(8080, 8081)},
	{kind: spec.VM, path: "port_forward.host", on: onKernel, values: freePorts, shows: holdsPort},
	{kind: spec.VM, path: "port_forward.host_ip", on: onKernel, values: texts("127.0.0.1", "127.0.0.2"), shows: holdsPort},
	{kind: spec.VM, path: "port_forward.protocol", on: onKernel, values: texts("tcp", "udp"), shows: holdsPort},

	{kind: spec.VM, path: "network_interface.network", on: onKernel, values: texts("network.one", "network.two"), shows: holdsAddress},
	{kind: spec.VM, path: "network_interface.address", on: onKernel, values: texts("10.77.0.10", "10.78.0.11"), shows: holdsAddress},

	{kind: spec.VM, path: "template", on: onKernel, values: templates},
	{kind: spec.VM, path: "params", on: onKernel, values: fixed(params("one"), params("two"))},
	{kind: spec.VM, path: "variables", on: onKernel, values: fixed(params("one"), params("two"))},
	{kind: spec.VM, path: "variables_json", on: onKernel, values: texts(`{"value":["one"]}`, `{"value":["two"]}`)},
	{kind: spec.VM, path: "outputs", on: onKernel, values: fixed(params("one"), params("two"))},
	{kind: spec.VM, path: "plain", on: onKernel, values: fixed(cty.True, cty.False)},
	{kind: spec.VM, path: "mount.source", on: onKernel, values: texts("/srv/one", "/srv/two")},
	{kind: spec.VM, path: "mount.target", on: onKernel, values: texts("/one", "/two")},
	{kind: spec.VM, path: "mount.writable", on: onKernel, values: fixed(cty.True, cty.False)},

	{kind: spec.VM, path: "ssh.user", on: onKernel, values: texts("root", "builder"), shows: logsIn},
	{kind: spec.VM, path: "ssh.identity", on: onKernel, values: identities, shows: logsIn},
	{kind: spec.VM, path: "ssh.host_key", on: onKernel, values: texts("pin", "accept-new"), shows: logsIn},
	{kind: spec.VM, path: "ssh.authorized_keys", on: onKernel, values: publicKeys, says: contains},

	{kind: spec.VM, path: "ssh.wait", on: onKernel, values: fixed(cty.True, cty.False), acts: waits},
	{kind: spec.VM, path: "ssh.wait_timeout", on: onKernel, values: numbers(70, 80), acts: limits(providers.Start, providers.PhaseReady)},
	{kind: spec.VM, path: "start.timeout", on: onKernel, values: numbers(70, 80), acts: limits(providers.Start, providers.PhaseUp)},
	{kind: spec.VM, path: "stop.grace", on: onDeaf, values: seconds(0.2, 0.4), acts: staysUp},
	{kind: spec.VM, path: "stop.force", on: onDeaf, values: fixed(cty.False, cty.True), acts: forces},
	{kind: spec.VM, path: "stop.force_wait", on: onStuck, values: seconds(0.2, 3.2), acts: givesUp},
	{kind: spec.VM, path: "timeouts.create", on: onKernel, values: numbers(70, 80), acts: limits(providers.Create, providers.PhaseMake)},
	{kind: spec.VM, path: "timeouts.delete", on: onKernel, values: numbers(70, 80), acts: limits(providers.Destroy, providers.PhaseRemove)},

	{kind: spec.Disk, path: "name", on: onDisk, values: texts("vmctl-one", "vmctl-two"), shows: named},
	{kind: spec.Disk, path: "size", on: onDisk, values: numbers(4<<20, 8<<20)},
	{kind: spec.Disk, path: "format", on: onDisk, values: texts("qcow2", "raw")},
	{kind: spec.Disk, path: "fs_type", on: onDisk, values: texts("ext4", "xfs")},
	{kind: spec.Disk, path: "on_stale_lock", on: onDisk, values: texts("unlock", "refuse"), acts: unlocks},
	{kind: spec.Disk, path: "timeouts.create", on: onDisk, values: numbers(70, 80), acts: limits(providers.Create, providers.PhaseMake)},
	{kind: spec.Disk, path: "timeouts.delete", on: onDisk, values: numbers(70, 80), acts: limits(providers.Destroy, providers.PhaseRemove)},

	{kind: spec.Network, path: "name", on: onNetwork, values: texts("vmctl-one", "vmctl-two"), shows: named},
	{kind: spec.Network, path: "cidr", on: onNetwork, values: texts("10.77.0.0/24", "10.78.0.0/24")},
	{kind: spec.Network, path: "internal", on: onNetwork, values: fixed(cty.False, cty.True)},
	{kind: spec.Network, path: "timeouts.create", on: onNetwork, values: numbers(70, 80), acts: limits(providers.Create, providers.PhaseMake)},
	{kind: spec.Network, path: "timeouts.delete", on: onNetwork, values: numbers(70, 80), acts: limits(providers.Destroy, providers.PhaseRemove)},

	{kind: box.Kind, path: "label", on: onBox, values: texts("one", "two")},
	{kind: box.Kind, path: "running", on: onBox, values: fixed(cty.True, cty.False), shows: runs},
	{kind: box.Kind, path: "content", on: onBox, values: texts("one", "two")},
	{kind: box.Kind, path: "paint", on: onBox, values: texts("red", "blue")},
}

// planned lists, for each kind, the attributes that no provider acts on, but the planner, the executor, or what
// stands around every provider.
var planned = map[spec.Kind][]string{
	spec.VM: {
		"provider", "for_each", "depends_on", "when_busy", "orphan.policy", "rollout.max_unavailable",
		"lifecycle.prevent_destroy", "lifecycle.on_change", "lifecycle.ignore_changes",
		"lifecycle.precondition.condition", "lifecycle.precondition.error_message", "lifecycle.postcondition.condition", "lifecycle.postcondition.error_message",
		"provision.script", "provision.run", "provision.env", "provision.timeout", "provision.contractual",
	},
	spec.Disk: {
		"provider", "for_each", "depends_on", "lifecycle.prevent_destroy", "lifecycle.on_change", "lifecycle.ignore_changes",
		"lifecycle.precondition.condition", "lifecycle.precondition.error_message", "lifecycle.postcondition.condition", "lifecycle.postcondition.error_message",
	},
	spec.Network: { // driver and labels are those of an engine
		"engine", "driver", "labels",
		"provider", "for_each", "depends_on", "avoid_host_subnets", "fallback_cidrs", "shared", "allocation.first", "allocation.last", "allocation.reserved",
		"lifecycle.prevent_destroy", "lifecycle.on_change", "lifecycle.ignore_changes",
		"lifecycle.precondition.condition", "lifecycle.precondition.error_message", "lifecycle.postcondition.condition", "lifecycle.postcondition.error_message",
	},
	box.Kind: {
		"for_each", "depends_on", "in", "lifecycle.prevent_destroy", "lifecycle.on_change", "lifecycle.ignore_changes",
		"lifecycle.precondition.condition", "lifecycle.precondition.error_message", "lifecycle.postcondition.condition", "lifecycle.postcondition.error_message",
	},
}

// runsFor finds in a failed stop how long the VM ran on.
var runsFor = regexp.MustCompile(`still running after ([0-9.]+m?s)`)
