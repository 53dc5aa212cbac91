package spec

import "github.com/zclconf/go-cty/cty"

var containerShape = Block{
	Version: 1, Name: "container", In: &In{Attr: "engine", Kinds: []Kind{Engine}},
	Doc: "A container of a container engine.",
	Attrs: []Attr{
		forEachOf("container"),
		dependsOn,
		inEngine,
		{
			Name: "image", Type: cty.String, Refers: []Kind{Image}, Required: true, Known: true,
			Doc: "The image that it is made of, as a reference: image.busybox.",
		},
		{
			Name: "name", Type: cty.String, Form: ObjectName, Known: true,
			Doc: "Its name in the engine; derived from project and address when left out.",
		},
		{
			Name: "state", Type: cty.String, Default: cty.StringVal("running"), OneOf: []string{"running", "created", "paused"},
			Doc: "The state that apply brings it to: running, created (it does not run), or paused.",
		},
		{
			Name: "entrypoint", Type: cty.List(cty.String),
			Public: "an engine shows it to everybody",
			Doc:    "The program in front of command; the image's when left out.",
		},
		{
			Name: "command", Type: cty.List(cty.String),
			Public: "an engine shows it to everybody",
			Doc:    "The program and its arguments; the image's when left out.",
		},
		{
			Name: "env", Type: cty.Map(cty.String), Form: Variables, Default: cty.MapValEmpty(cty.String), Sensitive: true,
			Doc: "Environment variables, beside those of the image.",
		},
		{
			Name: "user", Type: cty.String, Form: OneLine,
			Doc: "The user that it runs as; the image's when left out.",
		},
		{
			Name: "workdir", Type: cty.String, Form: GuestPath,
			Doc: "The working directory of its program; the image's when left out.",
		},
		{
			Name: "hostname", Type: cty.String, Form: OneLine,
			Doc: "Its host name; the engine chooses one when left out.",
		},
		labels,
		{
			Name: "restart", Type: cty.String, Default: cty.StringVal("no"), OneOf: []string{"no", "always", "unless-stopped", "on-failure"},
			Doc: "When the engine starts it again by itself.",
		},
		{
			Name: "memory", Type: cty.Number, Unit: Bytes, Min: 6 << 20,
			Doc: "The most memory that it may use, like \"256MiB\"; unlimited when left out.",
		},
		{
			Name: "cpus", Type: cty.Number, Digits: 9,
			Doc: "The most CPU time that it may use, in CPUs, like 1.5; unlimited when left out.",
		},
		ownAddress,
		{
			Name: "id", Type: cty.String, Computed: true,
			Doc: "vmctl's own identity of it.",
		},
		{
			Name: "container_id", Type: cty.String, Computed: true,
			Doc: "The engine's own identity of it.",
		},
	},
	Blocks: []Block{
		{
			Name: "port", Repeated: true, Reach: ReachPort,
			Doc: "Publishes a port of it on the engine's machine.",
			Attrs: []Attr{
				{
					Name: "container", Type: cty.Number, Required: true, Min: 1, Max: 65535,
					Doc: "Its own port.",
				},
				{
					Name: "host", Type: cty.Number, Required: true, Min: 1, Max: 65535,
					Doc: "The port of the engine's machine.",
				},
				{
					Name: "host_ip", Type: cty.String, Form: IPAddress, Default: cty.StringVal("127.0.0.1"),
					Doc: "The address of the engine's machine that listens.",
				},
				{
					Name: "protocol", Type: cty.String, Default: cty.StringVal("tcp"), OneOf: []string{"tcp", "udp"},
					Doc: "tcp or udp.",
				},
			},
		},
		{
			Name: "mount", Repeated: true,
			Doc: "Mounts a volume in it.",
			Attrs: []Attr{
				{
					Name: "volume", Type: cty.String, Refers: []Kind{Volume}, Required: true, Known: true,
					Doc: "The volume, as a reference: volume.cache.",
				},
				{
					Name: "target", Type: cty.String, Form: GuestPath, Required: true,
					Doc: "The path at which it is mounted.",
				},
				{
					Name: "read_only", Type: cty.Bool, Default: cty.False,
					Doc: "Whether the container may only read it.",
				},
			},
		},
		{
			Name: "network", Repeated: true,
			Doc: "Attaches it to a network; without one it is on the engine's default network.",
			Attrs: []Attr{
				{
					Name: "network", Type: cty.String, Refers: []Kind{Network}, Required: true, Known: true,
					Doc: "The network, as a reference: network.back.",
				},
				{
					Name: "aliases", Type: cty.List(cty.String), Default: cty.ListValEmpty(cty.String),
					Doc: "Further names of it in that network.",
				},
			},
		},
		{
			Name: "healthcheck", Optional: true,
			Doc: "A command with which the engine checks its health; apply waits until it is healthy.",
			Attrs: []Attr{
				{
					Name: "command", Type: cty.List(cty.String), Required: true,
					Public: "an engine shows it to everybody",
					Doc:    "The program that the engine runs in it, with its arguments; 0 means healthy.",
				},
				{
					Name: "interval", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(30), Min: 1,
					Doc: "How long the engine waits between two checks.",
				},
				{
					Name: "timeout", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(30), Min: 1,
					Doc: "How long a check may take.",
				},
				{
					Name: "retries", Type: cty.Number, Default: cty.NumberIntVal(3), Min: 1,
					Doc: "After how many failed checks it is unhealthy.",
				},
				{
					Name: "start_period", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(0),
					Doc: "How long failed checks do not count after it started.",
				},
			},
		},
		{
			Name: "start", Policy: true,
			Doc: "Settings of starting it.",
			Attrs: []Attr{
				{
					Name: "timeout", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(5 * 60), Min: 1,
					Doc: "How long it may take until it is healthy.",
				},
			},
		},
		{
			Name: "stop", Policy: true,
			Doc: "Settings of stopping it: requested first, then forced.",
			Attrs: []Attr{
				{
					Name: "grace", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(10), Min: 1,
					Doc: "How long it may take to end after the request.",
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
		timeoutsBlock,
		lifecycleBlock,
	},
}
