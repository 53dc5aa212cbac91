package spec

import "github.com/zclconf/go-cty/cty"

// rootBlocks are the blocks that stand at the top of a file.
var rootBlocks = []string{"locals", "moved", "output", "provider", "removed", "variable", "vm", "vmctl"}

// laterBlocks are top-level blocks that the language has and this build has not.
var laterBlocks = []string{
	"container", "disk", "engine", "image", "import", "job", "network", "volume", "workspace",
}

// laterProviders are provider types that the language has and this build has not.
var laterProviders = []string{"lima", "terraform"}

// typeNames are the types of variables.
var typeNames = []string{"any", "bool", "list", "map", "number", "object", "set", "string", "tuple"}

// resourceShapes has every kind of resource.
var resourceShapes = map[Kind]Block{VM: vmShape}

// providerShapes has every type of provider.
var providerShapes = map[string]Block{"libvirt": libvirtShape, "sim": simShape}

// applies are the values of a ceiling, from least to most disruptive.
var applies = []string{"live", "restart", "replace"}

var vmShape = Block{
	Name: "vm",
	Doc:  "A virtual machine.",
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
			Doc: "Whether it is wanted running.",
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
			Doc: "How its CPUs run; auto takes KVM where it works and TCG elsewhere.",
		},
		{
			Name: "when_busy", Type: cty.String, Form: WhenBusy, Default: cty.StringVal(blockWhenBusy), Policy: true,
			Doc: "Whether taking it down while somebody works in it is blocked, or waits for them, like \"wait 30m\".",
		},
		{
			Name: "id", Type: cty.String, Computed: true,
			Doc: "The system's own identity of it.",
		},
		{
			Name: "address", Type: cty.String, Computed: true,
			Doc: "Where SSH is reached.",
		},
		{
			Name: "ssh_port", Type: cty.Number, Computed: true,
			Doc: "The port at address where SSH is reached; null while it is off.",
		},
		{
			Name: "ports", Type: cty.Map(cty.Number), Computed: true,
			Doc: "Host ports by forwarded guest port.",
		},
	},
	Blocks: []Block{
		{
			Name: "boot", Optional: true,
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
					Doc: "The kernel's command line.",
				},
			},
		},
		{
			Name: "port_forward", Repeated: true,
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
			Name: "ssh",
			Doc:  "How vmctl reaches the guest.",
			Attrs: []Attr{
				{
					Name: "user", Type: cty.String, Form: UserName, Default: cty.StringVal("root"),
					Doc: "The login name.",
				},
				{
					Name: "identity", Type: cty.String, File: true,
					Doc: "A private key file; null: a pair that vmctl makes and keeps.",
				},
				{
					Name: "host_key", Type: cty.String, Default: cty.StringVal("pin"), OneOf: []string{"pin", "accept-new"},
					Doc: "How the guest's host key is checked.",
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
			Doc: "How it is started.",
			Attrs: []Attr{
				{
					Name: "timeout", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(10 * 60), Min: 1,
					Doc: "How long a start may take.",
				},
			},
		},
		{
			Name: "stop", Policy: true,
			Doc: "How it is stopped: requested first, forced then.",
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
			Name: "lifecycle", Policy: true,
			Doc: "What vmctl may do to it.",
			Attrs: []Attr{
				{
					Name: "prevent_destroy", Type: cty.Bool, Default: cty.False,
					Doc: "Whether destroying and replacing it are blocked.",
				},
				{
					Name: "on_change", Type: cty.Map(cty.String), Form: Ceilings, OneOf: applies,
					Default: cty.MapValEmpty(cty.String),
					Doc:     "The most that an edit of an attribute may do: live, restart or replace.",
				},
			},
			Later: []string{"ignore_changes"},
		},
	},
	Later: []string{
		"additional_disk", "cloud_init", "image", "network_interface", "orphan", "outputs", "params",
		"restart_triggers", "rollout", "root_disk", "template", "timeouts", "variables",
	},
}

var libvirtShape = Block{
	Name: "libvirt",
	Doc:  "Virtual machines of one libvirt connection.",
	Attrs: []Attr{
		{
			Name: "uri", Type: cty.String, Form: OneLine, Known: true,
			Doc: "The connection; qemu:///session for a user and qemu:///system for root when left out.",
		},
		{
			Name: "pool", Type: cty.String, Form: OneLine, Known: true,
			Doc: "The storage pool of its files.",
		},
	},
	Later: []string{"for_each"},
}

var simShape = Block{
	Name: "sim",
	Doc:  "A simulated host in the data directory, for tests: its virtual machines are plain processes.",
	Attrs: []Attr{
		{
			Name: "weightless", Type: cty.Bool, Default: cty.False, Known: true,
			Doc: "Whether its virtual machines are records without processes.",
		},
	},
	Blocks: []Block{
		{
			Name: "fault", Repeated: true,
			Doc: "Something that goes wrong.",
			Attrs: []Attr{
				{
					Name: "op", Type: cty.String, Required: true, Known: true,
					OneOf: []string{"observe", "define", "redefine", "start", "wait_ready", "stop", "recover", "delete", "unlock", "clear"},
					Doc:   "The operation that it strikes.",
				},
				{
					Name: "address", Type: cty.String, Form: OneLine, Known: true,
					Doc: "The address that it strikes, like vm.dev; any when left out.",
				},
				{
					Name: "kind", Type: cty.String, Required: true, Known: true,
					OneOf: []string{"fail", "hang", "ignore_request", "late_exit", "partial", "leak_pid", "die", "unreadable", "slow", "unkillable"},
					Doc:   "What goes wrong.",
				},
				{
					Name: "times", Type: cty.Number, Min: 1, Known: true,
					Doc: "How often it strikes; always when left out.",
				},
				{
					Name: "delay", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(1), Min: 1, Known: true,
					Doc: "How long slow and late_exit take.",
				},
			},
		},
	},
	Later: []string{"for_each"},
}

var vmctlShape = Block{
	Name: "vmctl",
	Doc:  "Settings of the project.",
	Attrs: []Attr{
		{
			Name: "required_version", Type: cty.String, Form: OneLine,
			Doc: "Which versions of vmctl may use these files.",
		},
		{
			Name: "project", Type: cty.String,
			Doc: "The project's name.",
		},
		{
			Name: "id", Type: cty.String,
			Doc: "The project's identity, written once by vmctl init.",
		},
	},
	Blocks: []Block{
		{
			Name: "state",
			Doc:  "Where and how state is kept.",
			Attrs: []Attr{
				{
					Name: "lock_timeout", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(30),
					Doc: "How long a command waits for another one's run lock.",
				},
			},
		},
	},
	Later: []string{"refresh"},
}

var variableShape = Block{
	Name: "variable",
	Doc:  "An input.",
	Attrs: []Attr{
		{Name: "type", Type: cty.DynamicPseudoType, Meta: true, Doc: "Its type."},
		{Name: "default", Type: cty.DynamicPseudoType, Meta: true, Doc: "Its value when none is given."},
		{Name: "description", Type: cty.String, Doc: "What it is for."},
		{Name: "sensitive", Type: cty.Bool, Default: cty.False, Doc: "Whether its value is never shown."},
		{Name: "nullable", Type: cty.Bool, Default: cty.True, Doc: "Whether it may be null."},
	},
	Blocks: []Block{validationShape},
}

var validationShape = Block{
	Name: "validation", Repeated: true,
	Doc: "A rule that its value must meet.",
	Attrs: []Attr{
		{Name: "condition", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "True where the value is good."},
		{Name: "error_message", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "What is said where it is not."},
	},
}

var outputShape = Block{
	Name: "output",
	Doc:  "A value to show.",
	Attrs: []Attr{
		{Name: "value", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "What it shows."},
		{Name: "sensitive", Type: cty.Bool, Default: cty.False, Doc: "Whether it is shown only when asked for by name."},
		{Name: "description", Type: cty.String, Doc: "What it is."},
	},
}

var movedShape = Block{
	Name: "moved",
	Doc:  "What is remembered under one address is another resource now.",
	Attrs: []Attr{
		{Name: "from", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "The address that it had."},
		{Name: "to", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "The address that it has."},
	},
}

var removedShape = Block{
	Name: "removed",
	Doc:  "What is remembered under an address is not wanted any more.",
	Attrs: []Attr{
		{Name: "from", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "The address that it had."},
		{
			Name: "destroy", Type: cty.Bool, Required: true,
			Doc: "True destroys it, whatever its lifecycle said; false lets go of it and leaves it as it is.",
		},
	},
}
