package spec

import "github.com/zclconf/go-cty/cty"

// keptInLima is the reason why templates cannot hold secrets.
const keptInLima = "Lima keeps it in a file that limactl shows"

var vmShape = Block{
	Version: 1, Name: "vm", Ceiling: "restart", Conditions: []string{"ssh.ready"},
	Doc: "A virtual machine.",
	Attrs: []Attr{
		{
			Name: "provider", Type: cty.DynamicPseudoType, Meta: true,
			Doc: "The provider that makes it, as a reference: provider.libvirt.here.",
		},
		{
			Name: "for_each", Type: cty.DynamicPseudoType, Meta: true,
			Doc: "A map, or a set of strings: one virtual machine for each key.",
		},
		{
			Name: "depends_on", Type: cty.DynamicPseudoType, Meta: true,
			Doc: "References to resources that must be ready before it is made.",
		},
		{
			Name: "name", Type: cty.String, Form: ObjectName, Known: true,
			Doc: "Its name in the system; derived from project and address when left out.",
		},
		{
			Name: "running", Type: cty.Bool, Default: cty.True, Known: true,
			Doc: "Whether it should run.",
		},
		{
			Name: "cpus", Type: cty.Number, Default: cty.NumberIntVal(2), Min: 1, Max: 4096,
			Doc: "Virtual CPUs.",
		},
		{
			Name: "memory", Type: cty.Number, Unit: Bytes, Default: cty.NumberIntVal(2 << 30), Min: 16 << 20,
			Doc: "Memory, a size like \"2GiB\".",
		},
		{
			Name: "accel", Type: cty.String, Default: cty.StringVal("auto"), OneOf: []string{"auto", "kvm", "tcg"},
			Doc: "The accelerator of its CPUs; auto takes KVM where it works and TCG elsewhere.",
		},
		{
			Name: "when_busy", Type: cty.String, Form: WhenBusy, Default: cty.StringVal(blockWhenBusy), Policy: true,
			Doc: "Whether taking it down while somebody works in it is blocked, or waits for them, like \"wait 30m\".",
		},
		{
			Name: "restart_triggers", Type: cty.Map(cty.String), Default: cty.MapValEmpty(cty.String), Sensitive: true,
			Doc: "Values that restart it when they change, like { ca = filesha256(\"ca.pem\") }.",
		},
		{
			Name: "template", Type: cty.String, Form: YAML, Known: true,
			Public: keptInLima,
			Doc:    "A Lima template: YAML text, like file(\"templates/dev.yaml\"), or the place of one, like \"template:docker\".",
		},
		{
			Name: "params", Type: cty.Map(cty.String),
			Public: keptInLima,
			Doc:    "Parameters of the template (Lima's param).",
		},
		{
			Name: "plain", Type: cty.Bool, Known: true,
			Doc: "Whether Lima leaves the guest alone: no guest agent, no mounts, no forwarded ports of its own.",
		},
		terraformVariables, terraformVariablesJSON, terraformOutputs,
		ownAddress,
		{
			Name: "id", Type: cty.String, Computed: true,
			Doc: "The system's own identity of it.",
		},
		{
			Name: "address", Type: cty.String, Computed: true,
			Doc: "Its address in the first of its networks; without one, the address at which SSH is reached.",
		},
		{
			Name: "ssh_port", Type: cty.Number, Computed: true,
			Doc: "The port where SSH is reached; null while it is off.",
		},
		{
			Name: "ports", Type: cty.Map(cty.Number), Computed: true,
			Doc: "Host ports by forwarded guest port.",
		},
	},
	Blocks: []Block{
		{
			Name: "boot", Optional: true, ConflictsWith: "image",
			Doc: "Boots a kernel directly.",
			Attrs: []Attr{
				{
					Name: "kernel", Type: cty.String, File: true, Required: true,
					Doc: "The kernel image, a file.",
				},
				{
					Name: "kernel_sha256", Type: cty.String, Derived: true, DigestOf: "kernel",
					Doc: "The digest of kernel.",
				},
				{
					Name: "initrd", Type: cty.String, File: true,
					Doc: "The initial RAM disk, a file.",
				},
				{
					Name: "initrd_sha256", Type: cty.String, Derived: true, DigestOf: "initrd",
					Doc: "The digest of initrd; null without one.",
				},
				{
					Name: "cmdline", Type: cty.String, Form: OneLine, Default: cty.StringVal(""),
					Public: "a kernel command line is public, in QEMU's arguments and in logs",
					Doc:    "The kernel's command line.",
				},
			},
		},
		{
			Name: "image", Optional: true, Shorthand: "source", ConflictsWith: "boot",
			Doc: "The disk image from which its own disk is made. Later changes of the image have no effect.",
			Attrs: []Attr{
				{
					Name: "source", Type: cty.String, Form: FileOrURL, Required: true, Known: true,
					Doc: "A qcow2 file, as a path or an http or https URL.",
				},
				{
					Name: "sha256", Type: cty.String, Form: SHA256, Known: true,
					Doc: "The expected SHA-256 of its content; unchecked when left out.",
				},
			},
		},
		{
			Name: "root_disk", Optional: true, DefaultedWith: "image",
			Doc: "Its own disk, which is destroyed with it.",
			Attrs: []Attr{
				{
					Name: "size", Type: cty.Number, Unit: Bytes, Default: cty.NumberIntVal(20 << 30), Min: 1 << 20,
					Doc: "Its size, like \"20GiB\"; it grows in place and never shrinks.",
				},
			},
		},
		{
			Name: "additional_disk", Repeated: true,
			Doc: "A disk that it uses and that outlives it.",
			Attrs: []Attr{
				{
					Name: "disk", Type: cty.String, Refers: []Kind{Disk}, Required: true, Known: true,
					Doc: "The disk, as a reference: disk.cache.",
				},
				{
					Name: "mount_point", Type: cty.String, Form: GuestPath,
					Doc: "The path at which the guest mounts it.",
				},
			},
		},
		{
			Name: "network_interface", Repeated: true,
			Doc: "Puts it on a network, beside the one by which vmctl reaches it.",
			Attrs: []Attr{
				{
					Name: "network", Type: cty.String, Refers: []Kind{Network}, Required: true, Known: true,
					Doc: "The network, as a reference: network.agents.",
				},
				{
					Name: "address", Type: cty.String, Form: AutoAddress, Default: cty.StringVal("auto"), Known: true,
					Doc: "Its IPv4 address there; auto takes a free one, which it keeps.",
				},
			},
		},
		{
			Name: "cloud_init", Optional: true,
			Doc: "The input of cloud-init at the guest's first boot.",
			Attrs: []Attr{
				{
					Name: "user_data", Type: cty.String, Sensitive: true,
					Doc: "User data, for example file(\"cloud-init.yaml\").",
				},
				{
					Name: "network_config", Type: cty.String, Sensitive: true,
					Doc: "Network configuration.",
				},
			},
		},
		{
			Name: "mount", Repeated: true, Reach: ReachFolder,
			Doc: "Mounts a folder of this host in the guest.",
			Attrs: []Attr{
				{
					Name: "source", Type: cty.String, Form: HostFolder, Required: true,
					Doc: "The folder of this host; relative to the spec's folder, or to the home folder after \"~/\".",
				},
				{
					Name: "target", Type: cty.String, Form: GuestPath,
					Doc: "The path at which the guest mounts it; the same path as source when left out.",
				},
				{
					Name: "writable", Type: cty.Bool, Default: cty.False,
					Doc: "Whether the guest may write to it.",
				},
			},
		},
		{
			Name: "port_forward", Repeated: true, Reach: ReachPort,
			Doc: "Forwards a port of this host to one of the guest.",
			Attrs: []Attr{
				{
					Name: "guest", Type: cty.Number, Required: true, Min: 1, Max: 65535,
					Doc: "The guest's port.",
				},
				{
					Name: "host", Type: cty.String, Form: HostPort, Default: cty.StringVal("auto"),
					Doc: "The host's port; auto takes a free one.",
				},
				{
					Name: "host_ip", Type: cty.String, Form: IPAddress, Default: cty.StringVal("127.0.0.1"),
					Doc: "The host's address that listens.",
				},
				{
					Name: "protocol", Type: cty.String, Default: cty.StringVal("tcp"), OneOf: []string{"tcp", "udp"},
					Doc: "tcp or udp.",
				},
			},
		},
		{
			Name: "provision", Repeated: true, Labelled: true,
			Doc: "A script that vmctl runs in the guest, as the user of ssh.user, once the guest is ready.",
			Attrs: []Attr{
				{
					Name: "script", Type: cty.String, Required: true, Sensitive: true,
					Doc: "The script: any program that begins with #!, else a shell script, like file(\"provision/tools.sh\").",
				},
				{
					Name: "run", Type: cty.String, Default: cty.StringVal("once"), OneOf: []string{"once", "on_change", "each_start"},
					Doc: "When it runs: once in the life of the VM, again whenever script or env changes, or after each start.",
				},
				{
					Name: "env", Type: cty.Map(cty.String), Form: Variables, Sensitive: true,
					Doc: "Environment variables of the script, like { TOKEN = var.token }.",
				},
				{
					Name: "timeout", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(10 * 60), Min: 1,
					Doc: "How long it may run.",
				},
				{
					Name: "contractual", Type: cty.Bool, Default: cty.True,
					Doc: "Whether its failure fails the apply; false: a warning.",
				},
				{
					Name: "order", Type: cty.Number, Derived: true,
					Doc: "Its place among the scripts of the VM, which run in the order in which they are written.",
				},
			},
		},
		{
			Name: "ssh",
			Doc:  "vmctl's access to the guest.",
			Attrs: []Attr{
				{
					Name: "user", Type: cty.String, Form: UserName, Default: cty.StringVal("root"),
					Doc: "The login name.",
				},
				{
					Name: "identity", Type: cty.String, File: true, Private: true,
					Doc: "A private key file; null: a pair that vmctl makes and keeps.",
				},
				{
					Name: "authorized_keys", Type: cty.List(cty.String),
					Doc: "Public keys of others who may log in, as lines of authorized_keys.",
				},
				{
					Name: "host_key", Type: cty.String, Default: cty.StringVal("pin"), OneOf: []string{"pin", "accept-new"},
					Doc: "The check of the guest's host key.",
				},
				{
					Name: "wait", Type: cty.Bool, Default: cty.True, Policy: true,
					Doc: "Whether apply waits until SSH answers.",
				},
				{
					Name: "wait_timeout", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(5 * 60), Min: 1, Policy: true,
					Doc: "How long apply waits for SSH.",
				},
			},
		},
		{
			Name: "start", Policy: true,
			Doc: "Settings of starting it.",
			Attrs: []Attr{
				{
					Name: "timeout", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(10 * 60), Min: 1,
					Doc: "How long a start may take.",
				},
			},
		},
		{
			Name: "stop", Policy: true,
			Doc: "Settings of stopping it: requested first, then forced.",
			Attrs: []Attr{
				{
					Name: "grace", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(30), Min: 1,
					Doc: "How long it may take to shut down after the request.",
				},
				{
					Name: "force", Type: cty.Bool, Default: cty.True,
					Doc: "Whether it is forced after that; false: the stop fails instead.",
				},
				{
					Name: "force_wait", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(10), Min: 1,
					Doc: "How long to wait until it is gone after it was forced.",
				},
			},
		},
		{
			Name: "orphan", Policy: true,
			Doc: "The handling of a running VM whose record is lost.",
			Attrs: []Attr{
				{
					Name: "policy", Type: cty.String, Default: cty.StringVal("recover"),
					OneOf: []string{"recover", "adopt", "stop", "report"},
					Doc:   "recover adopts it, and restarts it if it does not work; adopt only adopts it; stop adopts and stops it; report only reports it.",
				},
			},
		},
		{
			Name: "rollout", Policy: true,
			Doc: "The order of changes among the instances of a for_each.",
			Attrs: []Attr{
				{
					Name: "max_unavailable", Type: cty.Number, Default: cty.NumberIntVal(1), Min: 1,
					Doc: "How many instances may be down at once for restarts and replacements.",
				},
			},
		},
		timeoutsBlock,
		lifecycleBlock,
	},
}
