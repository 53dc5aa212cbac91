package spec

import "github.com/zclconf/go-cty/cty"

// rootBlocks lists the blocks that stand at the top of a file.
var rootBlocks = []string{
	"check", "container", "disk", "engine", "image", "import", "job", "locals", "moved", "network", "output", "provider", "removed", "variable",
	"vm", "vmctl", "volume", "workspace",
}

// typeNames lists the types of variables.
var typeNames = []string{"any", "bool", "list", "map", "number", "object", "set", "string", "tuple"}

// resourceShapes has every kind of resource.
var resourceShapes = map[Kind]Block{
	VM: fix(vmShape), Disk: fix(diskShape), Workspace: fix(workspaceShape),
	Engine: fix(engineShape), Image: fix(imageShape), Volume: fix(volumeShape), Network: fix(networkShape), Container: fix(containerShape),
	Job: fix(jobShape),
}

// providerShapes has every type of provider.
var providerShapes = map[string]Block{"libvirt": fix(libvirtShape), "lima": fix(limaShape), "sim": fix(simShape), "terraform": fix(terraformShape)}

// applies lists the values of a ceiling, from least to most disruptive.
var applies = []string{"live", "restart", "replace"}

var vmctlShape = Block{
	Name: "vmctl",
	Doc:  "Settings of the project.",
	Attrs: []Attr{
		{
			Name: "required_version", Type: cty.String, Form: OneLine,
			Doc: "The versions of vmctl that may use these files.",
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
			Doc:  "Settings of the state.",
			Attrs: []Attr{
				{
					Name: "lock_timeout", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(30),
					Doc: "How long a command waits for another one's run lock.",
				},
			},
		},
		{
			Name: "refresh",
			Doc:  "How what exists is read.",
			Attrs: []Attr{
				{
					Name: "timeout", Type: cty.Number, Unit: Duration, Min: 1,
					Doc: "How long the reading of one system may take: a host, or the inside of a virtual machine; as long as its provider allows when left out.",
				},
				{
					Name: "on_unknown", Type: cty.String, Default: cty.StringVal(RefuseUnknown), OneOf: []string{RefuseUnknown, SkipUnknown},
					Doc: "What to do where something cannot be read: refuse the whole plan, or skip that, with what depends on it.",
				},
			},
		},
	},
}

// The values of on_unknown.
const (
	RefuseUnknown = "refuse"
	SkipUnknown   = "skip"
)

var variableShape = Block{
	Name: "variable",
	Doc:  "An input variable.",
	Attrs: []Attr{
		{Name: "type", Type: cty.DynamicPseudoType, Meta: true, Doc: "Its type."},
		{Name: "default", Type: cty.DynamicPseudoType, Meta: true, Doc: "Its value when none is given."},
		{Name: "description", Type: cty.String, Doc: "Its purpose."},
		{Name: "sensitive", Type: cty.Bool, Default: cty.False, Doc: "Whether its value is never shown."},
		{Name: "nullable", Type: cty.Bool, Default: cty.True, Doc: "Whether it may be null."},
	},
	Blocks: []Block{validationShape},
}

var validationShape = Block{
	Name: "validation", Repeated: true,
	Doc: "A condition that its value must meet.",
	Attrs: []Attr{
		{Name: "condition", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "True if the value is allowed."},
		{Name: "error_message", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "The message for a value that is not allowed."},
	},
}

var outputShape = Block{
	Name: "output",
	Doc:  "A value to print.",
	Attrs: []Attr{
		{Name: "value", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "The value to show."},
		{Name: "sensitive", Type: cty.Bool, Default: cty.False, Doc: "Whether output hides it unless it is named."},
		{Name: "description", Type: cty.String, Doc: "Its description."},
	},
}

var checkShape = Block{
	Name:   CheckBlock,
	Doc:    "Conditions that a plan, an apply and drift evaluate; a false one is a warning.",
	Blocks: []Block{assertShape},
}

var assertShape = Block{
	Name: string(Assert), Repeated: true, Attrs: conditionAttrs,
	Doc: "A condition, and what to say where it is false.",
}

var preconditionShape = Block{
	Name: string(Precondition), Repeated: true, Attrs: conditionAttrs,
	Doc: "A condition without which its object is not changed.",
}

var postconditionShape = Block{
	Name: string(Postcondition), Repeated: true, Attrs: conditionAttrs,
	Doc: "A condition that its object meets once it was changed; otherwise it fails, and what depends on it does not start.",
}

var conditionAttrs = []Attr{
	{Name: "condition", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "True if all is well."},
	{Name: "error_message", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "The message for a condition that is false."},
}

var movedShape = Block{
	Name: "moved",
	Doc:  "Gives the record of one address to another address.",
	Attrs: []Attr{
		{Name: "from", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "The address that it had."},
		{Name: "to", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "The address that it has."},
	},
}

var removedShape = Block{
	Name: "removed",
	Doc:  "Destroys or releases the object of an address that has no block any more.",
	Attrs: []Attr{
		{Name: "from", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "The address that it had."},
		{
			Name: "destroy", Type: cty.Bool, Required: true,
			Doc: "True destroys it, whatever its lifecycle said; false lets go of it and leaves it as it is.",
		},
	},
}

var importShape = Block{
	Name: "import",
	Doc:  "Adopts an existing object as this resource.",
	Attrs: []Attr{
		{Name: "to", Type: cty.DynamicPseudoType, Meta: true, Required: true, Doc: "The address that it gets."},
		{Name: "id", Type: cty.String, Form: OneLine, Required: true, Doc: "Its name in the system, or the system's own identity of it."},
	},
}
