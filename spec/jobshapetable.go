package spec

import "github.com/zclconf/go-cty/cty"

// jobEnvironmentBlock is environmentBlock for the command of a job, in addition to that of its workspace.
var jobEnvironmentBlock = Block{
	Name: environmentBlock.Name, Optional: true, Attrs: environmentBlock.Attrs,
	Doc: "The environment of its command, beside that of its workspace. It counts from the next run on, and makes no job due again.",
}

var jobShape = Block{
	Version: 1, Name: "job", In: &In{Outlives: true},
	Doc: "A coding agent, or any command, that runs in the background of a workspace.",
	Attrs: []Attr{
		forEachOf("job"),
		dependsOn,
		{
			Name: "workspace", Type: cty.String, Refers: []Kind{Workspace}, Required: true, Known: true,
			Doc: "The workspace that it runs in, as a reference: workspace.auth.",
		},
		{
			Name: "agent", Type: cty.String, Reach: ReachCommand, Default: cty.StringVal("command"), OneOf: []string{"command", "claude", "codex", "gemini"},
			Doc: "The agent whose output says how it ended; command: the exit status alone does.",
		},
		{
			Name: "mode", Type: cty.String, Form: ObjectName, Policy: true,
			Doc: "A word for what it does, like review: its record has it, and job list --mode finds it. The agent does not get it.",
		},
		{
			Name: "command", Type: cty.List(cty.String), Reach: ReachCommand,
			Public: "everybody on the machine can see the arguments of a process; use prompt, or env",
			Doc:    "The command with its arguments, which no shell reads; null: the agent's own.",
		},
		{
			Name: "prompt", Type: cty.String, Sensitive: true,
			Doc: "The text that the command reads from standard input, like file(\"prompts/review.md\").",
		},
		{
			Name: "triggers", Type: cty.Map(cty.String), Default: cty.MapValEmpty(cty.String), Sensitive: true,
			Doc: "Values that make a job with run = \"once\" due again when they change.",
		},
		{
			Name: "containment", Type: cty.String, Default: cty.StringVal("none"), OneOf: []string{"none", "worktree"},
			Doc: "Where it may write; none: in the workspace, like its user; worktree: in a copy, which is removed at the end.",
		},
		{
			Name: "scope", Type: cty.String, Default: cty.StringVal("working-tree"), OneOf: []string{"working-tree", "staged", "branch-diff", "head"},
			Doc: "The part of the workspace that its copy holds; all but working-tree need containment = \"worktree\". Without a copy it sees all, ignored files too.",
		},
		{
			Name: "run", Type: cty.String, Default: cty.StringVal("manual"), OneOf: []string{"manual", "once"}, Policy: true,
			Doc: "manual: vmctl job run alone starts it; once: apply does, once for each set of triggers, agent, command, prompt and workspace.",
		},
		{
			Name: "timeout", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(2 * 60 * 60), Min: 1, Policy: true,
			Doc: "How long it may run.",
		},
		{
			Name: "idle_timeout", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(30 * 60), Min: 1, Policy: true,
			Doc: "How long it may run without any output.",
		},
		{
			Name: "max_parallel", Type: cty.Number, Min: 1, Max: 1000, Policy: true,
			Doc: "How many jobs of the block, of all keys of its for_each, run at once; the others are queued. null: all.",
		},
		ownAddress,
		{
			Name: "id", Type: cty.String, Computed: true,
			Doc: "vmctl's own identity of it.",
		},
	},
	Blocks: []Block{
		{
			Name: "stop", Policy: true,
			Doc: "Settings of ending it: requested first, then forced.",
			Attrs: []Attr{
				{
					Name: "grace", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(10), Min: 1,
					Doc: "How long it may take to end after the request.",
				},
				{
					Name: "force", Type: cty.Bool, Default: cty.True,
					Doc: "Whether it is killed after that; false: it runs on until it ends by itself.",
				},
			},
		},
		{
			Name: "orphan", Policy: true,
			Doc: "Settings of a job of which nobody knows a process.",
			Attrs: []Attr{
				{
					Name: "window", Type: cty.Number, Unit: Duration, Default: cty.NumberIntVal(60 * 60), Min: 1,
					Doc: "How long after it was made such a job may still turn out to run: from then on it counts as stale.",
				},
			},
		},
		{
			Name: "resume", Optional: true,
			Doc: "The job that it continues.",
			Attrs: []Attr{
				{
					Name: "from", Type: cty.String, Form: OneLine, Known: true, Public: "IDs of jobs are in every list",
					Doc: "The ID of a job of the same agent that has ended: its session goes on, by apply once for each ID. With containment = \"worktree\" only codex has sessions that go on. null: a new session begins.",
				},
			},
		},
		jobEnvironmentBlock,
		lifecycleBlock,
	},
}
