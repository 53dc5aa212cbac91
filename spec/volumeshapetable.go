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
	Version: 1, Name: "network", In: &In{Attr: "engine", Kinds: []Kind{Engine}},
	Doc: "A network of a container engine.",
	Attrs: []Attr{
		forEachOf("network"),
		dependsOn,
		inEngine,
		{
			Name: "name", Type: cty.String, Form: ObjectName, Known: true,
			Doc: "Its name in the engine; derived from project and address when left out.",
		},
		{
			Name: "driver", Type: cty.String, Form: OneLine, Default: cty.StringVal("bridge"),
			Doc: "The engine's driver that makes it.",
		},
		{
			Name: "internal", Type: cty.Bool, Default: cty.False,
			Doc: "Whether it has no way out of the engine's machine.",
		},
		labels,
		ownAddress,
		{
			Name: "id", Type: cty.String, Computed: true,
			Doc: "vmctl's own identity of it.",
		},
	},
	Blocks: []Block{timeoutsBlock, lifecycleBlock},
	Later:  []string{"allocation", "avoid_host_subnets", "cidr", "provider", "shared"},
}
