package spec

import "github.com/zclconf/go-cty/cty"

var volumeShape = Block{
	Version: 1, Name: "volume", In: &In{Attr: "engine", Kinds: []Kind{Engine}}, Ceiling: "live",
	Doc: "A volume of a container engine, which outlives the containers that use it.",
	Attrs: []Attr{
		forEachOf("volume"),
		dependsOn,
		inEngine,
		{
			Name: "name", Type: cty.String, Form: ObjectName, Known: true,
			Doc: "Its name in the engine; derived from project and address when left out.",
		},
		{
			Name: "driver", Type: cty.String, Form: OneLine, Default: cty.StringVal("local"),
			Doc: "The engine's driver that keeps it.",
		},
		labels,
		ownAddress,
		{
			Name: "id", Type: cty.String, Computed: true,
			Doc: "vmctl's own identity of it.",
		},
	},
	Blocks: []Block{timeoutsBlock, lifecycleBlock},
}

var networkShape = Block{
	Version: 1, Name: "network", In: &In{Attr: "engine", Kinds: []Kind{Engine}, Optional: true},
	Doc: "A network of a container engine, or with provider a network of virtual machines.",
	Attrs: []Attr{
		forEachOf("network"),
		dependsOn,
		{
			Name: "engine", Type: cty.String, Refers: []Kind{Engine}, Known: true,
			Doc: "The engine that it is in, as a reference: engine.dev. A network has either engine or provider.",
		},
		{
			Name: "provider", Type: cty.DynamicPseudoType, Meta: true,
			Doc: "The provider that makes it, as a reference: provider.libvirt.system.",
		},
		{
			Name: "name", Type: cty.String, Form: ObjectName, Known: true,
			Doc: "Its name in the system; derived from project and address when left out.",
		},
		{
			Name: "driver", Type: cty.String, Form: OneLine, Default: cty.StringVal("bridge"), With: "engine",
			Doc: "The engine's driver that makes it.",
		},
		{
			Name: "internal", Type: cty.Bool, Default: cty.False,
			Doc: "Whether it has no way out of its machine.",
		},
		withEngine(labels),
		{
			Name: "cidr", Type: cty.String, Form: Subnet, Known: true, Required: true, With: "provider",
			Doc: "Its addresses, as an IPv4 prefix: \"192.168.123.0/24\". The first one is the host's.",
		},
		{
			Name: "avoid_host_subnets", Type: cty.Bool, Default: cty.False, Policy: true, Known: true, With: "provider",
			Doc: "Whether it takes other addresses if the host is in a network with some of these.",
		},
		{
			Name: "fallback_cidrs", Type: cty.List(cty.String), Form: Subnets, Policy: true, Known: true, With: "provider",
			Doc: "The prefixes to try then, as long as cidr; the next ones of the same private range when left out.",
		},
		{
			Name: "shared", Type: cty.Bool, Default: cty.False, Policy: true, With: "provider",
			Doc: "Whether others may use it, too: while one of them does, it is kept rather than destroyed.",
		},
		ownAddress,
		{
			Name: "id", Type: cty.String, Computed: true,
			Doc: "vmctl's own identity of it.",
		},
	},
	Blocks: []Block{
		{
			Name: "allocation", Optional: true, Policy: true, With: "provider",
			Doc: "The addresses that virtual machines get whose address is \"auto\".",
			Attrs: []Attr{
				{
					Name: "first", Type: cty.String, Form: IPv4Address, Known: true,
					Doc: "The first one; the one after the host's when left out.",
				},
				{
					Name: "last", Type: cty.String, Form: IPv4Address, Known: true,
					Doc: "The last one; the last of the network when left out.",
				},
				{
					Name: "reserved", Type: cty.List(cty.String), Form: IPv4Addresses, Known: true,
					Doc: "Those among them that no virtual machine gets.",
				},
			},
		},
		timeoutsBlock, lifecycleBlock,
	},
}

// withEngine returns an attribute that only what is in an engine has.
func withEngine(a Attr) Attr {
	a.With = "engine"
	return a
}
