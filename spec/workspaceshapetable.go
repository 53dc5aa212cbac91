package spec

import "github.com/zclconf/go-cty/cty"

// environmentBlock is the environment of commands in a workspace.
var environmentBlock = Block{
	Name: "env",
	Doc:  "The environment of commands in it.",
	Attrs: []Attr{
		{
			Name: "pass", Type: cty.List(cty.String), Form: VariableNames, Reach: ReachVariable, Default: cty.ListValEmpty(cty.String),
			Public: "these are names of variables",
			Doc:    "Names of variables of vmctl's own environment that commands get; ANTHROPIC_* is all that begin with ANTHROPIC_. A VMCTL_VAR_NAME passes by its whole name alone.",
		},
		{
			Name: "set", Type: cty.Map(cty.String), Form: Variables, Sensitive: true,
			Doc: "Variables of commands, like { LANG = \"C\" }; a value that begins with ~/ is under the home there.",
		},
		{
			Name: "strip_proxy", Type: cty.Bool, Default: cty.False,
			Doc: "Whether variables of proxies, like HTTP_PROXY and no_proxy, do not pass from vmctl's own environment, by pass neither.",
		},
	},
}

var workspaceShape = Block{
	Version: 1, Name: "workspace", In: &In{Attr: "vm", Kinds: []Kind{VM}, Optional: true}, Work: true,
	Doc: "A branch of a git repository of this host, checked out in a virtual machine or in a folder of this host.",
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
		{
			Name: "mount_path", Type: cty.String, Computed: true,
			Doc: "The folder of this host at which it is mounted, an absolute path.",
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
					Name: "push", Type: cty.String, Default: cty.StringVal("on_create"), OneOf: []string{"on_create", "always", "manual"},
					Doc: "Whether each apply brings the commits of this host to it, or workspace push alone; making it always brings them.",
				},
				{
					Name: "fetch", Type: cty.String, Default: cty.StringVal("manual"), OneOf: []string{"manual", "always"},
					Doc: "Whether each apply brings its commits to this host, or workspace fetch alone.",
				},
				{
					Name: "on_destroy", Type: cty.String, Default: cty.StringVal("block"), OneOf: []string{"block", "save", "fetch"},
					Doc: "What happens to work that exists only in it before it is removed: it blocks the removal, is saved as workspace save does, or is fetched, which brings commits only.",
				},
			},
		},
		{
			Name: "mount", Optional: true, Policy: true, Needs: "vm", Reach: ReachFolder,
			Doc: "Shows the folder of a workspace in a virtual machine on this host, by SSHFS.",
			Attrs: []Attr{
				{
					Name: "type", Type: cty.String, Default: cty.StringVal("sshfs"), OneOf: []string{"sshfs"},
					Doc: "The way in which it is mounted.",
				},
				{
					Name: "mount_path", Type: cty.String, Form: HostFolder, Required: true,
					Doc: "The folder of this host: an empty one, or one that is made, and removed with the mount if it is empty then.",
				},
				{
					Name: "options", Type: cty.List(cty.String), Form: MountOptions, Default: cty.ListValEmpty(cty.String),
					Public: "plans show them; secrets belong into ssh",
					Doc:    "Options of sshfs, like [\"reconnect\", \"ServerAliveInterval=15\"]: another set mounts it anew.",
				},
				{
					Name: "required", Type: cty.Bool, Default: cty.False,
					Doc: "Whether a failure to mount fails the apply; false: a warning.",
				},
			},
		},
		environmentBlock,
		{
			Name: "hook", Repeated: true, Labelled: true, Policy: true, Reach: ReachCommand,
			Doc: "A command that vmctl runs in the workspace's folder, once for each text of the command.",
			Attrs: []Attr{
				{
					Name: "when", Type: cty.String, Default: cty.StringVal("created"), OneOf: []string{"created", "before_destroy"},
					Doc: "When it runs: once the workspace is there, or before it is removed.",
				},
				{
					Name: "command", Type: cty.List(cty.String), Required: true,
					Public: "plans show it; secrets belong into env",
					Doc:    "The program with its arguments, like [\"pre-commit\", \"install\"]: no shell reads them.",
				},
				{
					Name: "required", Type: cty.Bool, Default: cty.False,
					Doc: "Whether its failure fails the apply, and keeps the workspace from being removed; false: a warning.",
				},
				{
					Name: "timeout", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(10 * 60), Min: 1,
					Doc: "How long it may run.",
				},
				{
					Name: "order", Type: cty.Number, Derived: true,
					Doc: "Its place among the hooks of the workspace, which run in the order in which they are written.",
				},
			},
		},
		lifecycleBlock,
	},
}
