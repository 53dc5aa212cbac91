package spec

import "github.com/zclconf/go-cty/cty"

// providerForEach is in every type of provider.
var providerForEach = Attr{
	Name: "for_each", Type: cty.DynamicPseudoType, Meta: true,
	Doc: "A map, or a set of strings: one provider for each key.",
}

// overcommit is in every type of provider of virtual machines.
var overcommit = Attr{
	Name: "overcommit", Type: cty.Bool, Known: true,
	Doc: "Whether a virtual machine may have more processors than its host, and all of them together more memory.",
}

var libvirtShape = Block{
	Name: "libvirt",
	Doc:  "Virtual machines of one libvirt connection.",
	Attrs: []Attr{
		providerForEach,
		{
			Name: "uri", Type: cty.String, Form: OneLine, Known: true,
			Doc: "The connection; qemu:///session for a user and qemu:///system for root when left out.",
		},
		{
			Name: "pool", Type: cty.String, Form: OneLine, Known: true,
			Doc: "The storage pool of its files.",
		},
		overcommit,
	},
}

var limaShape = Block{
	Name: "lima",
	Doc:  "Virtual machines of one Lima home.",
	Attrs: []Attr{
		providerForEach,
		{
			Name: "home", Type: cty.String, Form: OneLine, Known: true,
			Doc: "The folder of the instances (LIMA_HOME); a private one in the data directory when left out.",
		},
		overcommit,
	},
}

var simShape = Block{
	Name: "sim",
	Doc:  "A simulated host in the data directory, for tests: its virtual machines are plain processes.",
	Attrs: []Attr{
		providerForEach,
		{
			Name: "folder", Type: cty.String, Form: OneLine, Known: true,
			Doc: "A folder for the host outside of the data directory: several data directories can share it.",
		},
		{
			Name: "weightless", Type: cty.Bool, Default: cty.False, Known: true,
			Doc: "Whether its virtual machines are records without processes.",
		},
		{
			Name: "host_agent", Type: cty.Bool, Known: true,
			Doc: "Whether each virtual machine is two processes: a driver, and a host agent that supervises it.",
		},
		{
			Name: "token", Type: cty.String, Form: OneLine, Known: true, Sensitive: true,
			Doc: "A secret that the virtual machines made with it ask for.",
		},
		{
			Name: "cpus", Type: cty.Number, Min: 1, Known: true,
			Doc: "The number of processors of the host; any number when left out.",
		},
		{
			Name: "memory", Type: cty.Number, Unit: Bytes, Min: 1 << 20, Known: true,
			Doc: "The memory of the host, like \"64GiB\"; any amount when left out.",
		},
		{
			Name: "subnets", Type: cty.List(cty.String), Form: Subnets, Known: true,
			Doc: "The networks that the host is in.",
		},
		overcommit,
	},
	Blocks: []Block{
		{
			Name: "fault", Repeated: true,
			Doc: "A fault to inject.",
			Attrs: []Attr{
				{
					Name: "op", Type: cty.String, Required: true, Known: true,
					OneOf: []string{"observe", "define", "redefine", "start", "wait_ready", "stop", "recover", "delete", "unlock", "clear", "grow", "upload", "write", "flush", "remove", "detach", "unmark"},
					Doc:   "The operation that fails.",
				},
				{
					Name: "address", Type: cty.String, Form: OneLine, Known: true,
					Doc: "The address whose operation fails, like vm.dev; any when left out.",
				},
				{
					Name: "kind", Type: cty.String, Required: true, Known: true,
					OneOf: []string{"fail", "hang", "ignore_request", "late_exit", "partial", "leak_pid", "die", "unreadable", "slow", "unkillable", "agent_dies"},
					Doc:   "The kind of fault.",
				},
				{
					Name: "times", Type: cty.Number, Min: 1, Known: true,
					Doc: "The number of times it strikes; always when left out.",
				},
				{
					Name: "delay", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(1), Min: 1, Known: true,
					Doc: "How long slow and late_exit take.",
				},
			},
		},
	},
}
