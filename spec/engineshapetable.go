package spec

import "github.com/zclconf/go-cty/cty"

var engineShape = Block{
	Version: 1, Name: "engine", In: &In{Attr: "vm", Kinds: []Kind{VM}, Optional: true},
	Inapplicable: &Setting{Attr: "type", Value: "containerd"},
	Doc:          "A container engine: in a virtual machine, or on this host.",
	Attrs: []Attr{
		forEachOf("engine"),
		dependsOn,
		{
			Name: "vm", Type: cty.String, Refers: []Kind{VM}, Known: true,
			Doc: "The virtual machine that it runs in, as a reference; null: this host.",
		},
		{
			Name: "type", Type: cty.String, Default: cty.StringVal("moby"), OneOf: []string{"moby", "containerd"}, Known: true,
			Doc: "moby: it has Docker's API. containerd: it has none, and nothing in it is applicable: no plan reads, makes or removes it until the type is moby again.",
		},
		{
			Name: "host", Type: cty.String, Form: OneLine, Reach: ReachServer, Default: cty.StringVal("unix:///var/run/docker.sock"), Known: true,
			Doc: "The socket of its API, where it runs, like \"unix:///run/docker.sock\"; where it is left out, that of containerd is \"unix:///run/containerd/containerd.sock\".",
		},
		{
			Name: "ready_timeout", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(5 * 60), Min: 1, Policy: true,
			Doc: "How long apply waits until it answers.",
		},
		{
			Name: "serve", Type: cty.Bool, Default: cty.False, Policy: true,
			Doc: "Whether a process of vmctl serves it at a socket of this host, which `endpoint` names, as long as its VM runs; a docker context of an engine in a VM needs that, and has it served by itself. On this host it is served anyway.",
		},
		ownAddress,
		{
			Name: "id", Type: cty.String, Computed: true,
			Doc: "vmctl's own identity of it.",
		},
		{
			Name: "endpoint", Type: cty.String, Computed: true,
			Doc: "The value of DOCKER_HOST that leads to it from this host; null where none does.",
		},
		{
			Name: "version", Type: cty.String, Computed: true,
			Doc: "The version of its software.",
		},
	},
	Blocks: []Block{
		{
			Name: "docker_context", Optional: true, Shorthand: "name",
			Doc: "A context of Docker's client on this host that leads to it: docker --context NAME.",
			Attrs: []Attr{
				{
					Name: "name", Type: cty.String, Form: OneLine, Required: true, Public: "the context's file shows it to everybody",
					Doc: "Its name.",
				},
				{
					Name: "make_current", Type: cty.String, Default: cty.StringVal("if_unhealthy"), OneOf: []string{"if_unhealthy", "never"},
					Doc: "if_unhealthy: it becomes the current one if that is missing, or provably leads to no engine.",
				},
			},
		},
		{
			Name: "unmanaged", Policy: true,
			Doc: "What a plan says of objects in it that no block describes.",
			Attrs: []Attr{
				unmanagedOf("containers"), unmanagedOf("images"), unmanagedOf("networks"), unmanagedOf("volumes"),
			},
		},
		timeoutsBlock, lifecycleBlock,
	},
}

// unmanagedOf returns the attribute that says what a plan says of some objects of an engine.
func unmanagedOf(name string) Attr {
	return Attr{
		Name: name, Type: cty.String, Default: cty.StringVal("ignore"), OneOf: []string{"ignore", "report"},
		Doc: "Those of its " + name + " that no block describes; report: each that the engine lets go of is a finding.",
	}
}

// forEachOf returns the attribute that makes one resource of a kind for each key.
func forEachOf(kind string) Attr {
	return Attr{Name: "for_each", Type: cty.DynamicPseudoType, Meta: true, Doc: "A map, or a set of strings: one " + kind + " for each key."}
}

// dependsOn is in every kind of an engine.
var dependsOn = Attr{
	Name: "depends_on", Type: cty.DynamicPseudoType, Meta: true,
	Doc: "References to resources that must be ready before it is made.",
}

// inEngine is in every kind whose objects an engine has.
var inEngine = Attr{
	Name: "engine", Type: cty.String, Refers: []Kind{Engine}, Required: true, Known: true,
	Doc: "The engine that has it, as a reference: engine.dev.",
}

// labels is in every kind whose objects can bear labels.
var labels = Attr{
	Name: "labels", Type: cty.Map(cty.String), Default: cty.MapValEmpty(cty.String),
	Public: "an engine shows labels to everybody",
	Doc:    "Labels, beside those of vmctl.",
}
