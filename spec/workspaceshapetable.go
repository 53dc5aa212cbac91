package spec

import "github.com/zclconf/go-cty/cty"

var workspaceShape = Block{
	Version: 1, Name: "workspace", In: &In{Attr: "vm", Kinds: []Kind{VM}, Optional: true}, Work: true,
	Later: []string{"hook", "mount"},
	Doc:   "A branch of a git repository of this host, checked out in a virtual machine or in a folder of this host.",
	Attrs: []Attr{
		{
			Name: "for_each", Type: cty.DynamicPseudoType, Meta: true,
			Doc: "A map, or a set of strings: one workspace for each key.",
		},
		{
			Name: "depends_on", Type: cty.DynamicPseudoType, Meta: true,
			Doc: "References to resources that must be ready before it is made.",
		},
		{
			Name: "vm", Type: cty.String, Refers: []Kind{VM}, Known: true,
			Doc: "The virtual machine that it is in, like vm.dev; null: this host.",
		},
		{
			Name: "repo", Type: cty.String, Form: HostFolder, Default: cty.StringVal("."), Known: true,
			Doc: "The git repository of this host that it belongs to: a folder of it.",
		},
		{
			Name: "branch", Type: cty.String, Form: OneLine, Required: true, Known: true,
			Doc: "The branch that is checked out.",
		},
		{
			Name: "path", Type: cty.String, Form: GuestPath, Required: true, Known: true,
			Doc: "The folder into which it is checked out, an absolute path that is not there yet.",
		},
		{
			Name: "create_branch", Type: cty.Bool, Default: cty.False, Policy: true,
			Doc: "Whether a branch that the repository lacks is made, at its HEAD; what is checked out there stays.",
		},
		ownAddress,
		{
			Name: "id", Type: cty.String, Computed: true,
			Doc: "Its identity.",
		},
		{
			Name: "base", Type: cty.String, Computed: true,
			Doc: "The commit from which it was made.",
		},
		{
			Name: "head", Type: cty.String, Computed: true,
			Doc: "The commit that is checked out.",
		},
	},
	Blocks: []Block{
		{
			Name: "sync", Policy: true,
			Doc: "What is exchanged with the repository of this host.",
			Attrs: []Attr{
				{
					Name: "on_dirty", Type: cty.String, Default: cty.StringVal("block"), OneOf: []string{"block", "warn"},
					Doc: "Whether workspace fetch refuses while there is work that is not committed, or warns of it.",
				},
				{
					Name: "on_destroy", Type: cty.String, Default: cty.StringVal("block"), OneOf: []string{"block", "save"},
					Doc: "Whether work that exists nowhere else keeps the workspace, or is saved in the repository before it is removed.",
				},
			},
			Later: []string{"fetch", "push"},
		},
		{
			Name: "env",
			Doc:  "The environment of commands in it.",
			Attrs: []Attr{
				{
					Name: "pass", Type: cty.List(cty.String), Default: cty.ListValEmpty(cty.String),
					Public: "these are names of variables",
					Doc:    "Names of variables of vmctl's own environment that commands get.",
				},
				{
					Name: "set", Type: cty.Map(cty.String), Form: Variables, Sensitive: true,
					Doc: "Variables of commands, like { LANG = \"C\" }; a value that begins with ~/ is under the home there.",
				},
			},
			Later: []string{"strip_proxy"},
		},
		lifecycleBlock,
	},
}
