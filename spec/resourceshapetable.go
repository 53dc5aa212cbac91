package spec

import "github.com/zclconf/go-cty/cty"

// ownAddress is in every kind of resource.
var ownAddress = Attr{
	Name: "resource_address", Type: cty.String, Own: true,
	Doc: "Its address in the spec, like vm.dev.",
}

var lifecycleBlock = Block{
	Name: "lifecycle", Policy: true,
	Doc: "Limits for what vmctl may do to it.",
	Attrs: []Attr{
		{
			Name: "prevent_destroy", Type: cty.Bool, Default: cty.False,
			Doc: "Whether destroying and replacing it are blocked.",
		},
		{
			Name: "on_change", Type: cty.Map(cty.String), Form: Ceilings, OneOf: applies,
			Default: cty.MapValEmpty(cty.String),
			Doc:     "The most disruptive way in which an edit of an attribute may apply: live, restart or replace.",
		},
		{
			Name: "ignore_changes", Type: cty.List(cty.String), Form: Paths,
			Default: cty.ListValEmpty(cty.String),
			Doc:     "Attributes whose edits and drift are ignored, like [memory, boot.cmdline]; or all.",
		},
	},
	Blocks: []Block{preconditionShape, postconditionShape},
}

var timeoutsBlock = Block{
	Name: "timeouts", Policy: true,
	Doc: "How long making and removing it may take.",
	Attrs: []Attr{
		{
			Name: "create", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(30 * 60), Min: 1,
			Doc: "How long making it may take, with what is copied for it.",
		},
		{
			Name: "delete", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(2 * 60), Min: 1,
			Doc: "How long removing it may take.",
		},
	},
}

var diskShape = Block{
	Version: 1, Name: "disk", Ceiling: "live",
	Doc: "A disk that virtual machines use, and that outlives them.",
	Attrs: []Attr{
		{
			Name: "provider", Type: cty.DynamicPseudoType, Meta: true,
			Doc: "The provider that makes it, as a reference: provider.libvirt.here.",
		},
		{
			Name: "for_each", Type: cty.DynamicPseudoType, Meta: true,
			Doc: "A map, or a set of strings: one disk for each key.",
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
			Name: "size", Type: cty.Number, Unit: Bytes, Required: true, Min: 1 << 20,
			Doc: "Its size, like \"100GiB\"; it grows in place and never shrinks.",
		},
		{
			Name: "format", Type: cty.String, Default: cty.StringVal("qcow2"), OneOf: []string{"qcow2", "raw"}, Known: true,
			Doc: "The format of its content.",
		},
		{
			Name: "fs_type", Type: cty.String, Form: OneLine,
			Doc: "The file system that the guest makes on it.",
		},
		{
			Name: "on_stale_lock", Type: cty.String, Default: cty.StringVal("unlock"), OneOf: []string{"unlock", "refuse"}, Policy: true,
			Doc: "Whether vmctl removes a lock of it whose holder has certainly ended.",
		},
		ownAddress,
		{
			Name: "id", Type: cty.String, Computed: true,
			Doc: "The system's own identity of it.",
		},
		{
			Name: "path", Type: cty.String, Computed: true,
			Doc: "Its path in the system.",
		},
	},
	Blocks: []Block{timeoutsBlock, lifecycleBlock},
}
