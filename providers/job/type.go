package job

import (
	"context"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// Host is the vmctl around the provider of job blocks.
type Host struct {
	// Records returns the records of the jobs of the project with these settings.
	Records func(providers.Settings) Store
	// Start starts a run of a block, and returns its record once that says how the start went. With an error and a record
	// of revision 0, the job is sure not to run.
	Start func(context.Context, BlockRun) (Record, error)
	// Observer holds records against the processes of now.
	Observer func() Observer
	// TakeUp starts another worker for a job in a VM that has lost its own.
	TakeUp func(context.Context, Store, Record) error
}

// Type returns the type of the provider of job blocks.
func Type(h Host) providers.Type {
	return providers.Type{
		Name: "job", Kinds: kinds, Check: check,
		Open: func(_ context.Context, s providers.Settings) (providers.Provider, error) {
			return &Provider{host: h, settings: s, store: h.Records(s)}, nil
		},
	}
}

// check returns what no job can do.
func check(_ spec.Kind, want cty.Value) (flaws []spec.Flaw) {
	scope, containment := Scope(ctyread.Text(want, "scope")), Containment(ctyread.Text(want, "containment"))
	if scope != "" && scope != WorkingTree && containment == Uncontained {
		flaws = append(flaws, spec.Flaw{
			Path: "scope", Summary: "A scope needs containment",
			Detail: fmt.Sprintf("`scope = %q` needs `containment = %q`: without a copy, a job sees its whole workspace.", scope, InCopy),
		})
	}
	command := ctyread.Attr(want, "command")
	if command.IsKnown() && (command.IsNull() || command.LengthInt() == 0) && ctyread.Text(want, "agent") == Plain {
		flaws = append(flaws, spec.Flaw{
			Path: "command", Summary: "Nothing to run",
			Detail: "A job needs a `command`, or an `agent`, which has one of its own.",
		})
	}
	if id := resumes(want); id != "" {
		switch err := id.Check(); {
		case err != nil:
			flaws = append(flaws, spec.Flaw{Path: "resume.from", Summary: "No ID of a job", Detail: "The `from` of a `resume` is no ID of a job: it has small letters, digits and dashes alone, as in `vmctl job list`."})
		case EndsWithCopy(ctyread.Text(want, "agent"), containment):
			flaws = append(flaws, spec.Flaw{
				Path: "resume.from", Summary: "No session in a copy",
				Detail: fmt.Sprintf("With `containment = %q` each job has a folder of its own, and %s finds a session in the folder alone that it began in. Write `containment = %q`, or leave `resume` out: a new session begins. The agent codex finds its sessions in every folder.", InCopy, ctyread.Text(want, "agent"), Uncontained),
			})
		case ctyread.Text(want, "agent") == Plain:
			flaws = append(flaws, spec.Flaw{Path: "resume.from", Summary: "Nothing to resume", Detail: "A job continues the session of an agent: with `resume`, name its `agent`."})
		}
	}
	return flaws
}

// commandOf returns the command of a block: its own, else the agent's.
func commandOf(want cty.Value) (command []string) {
	for _, v := range ctyread.List(ctyread.Attr(want, "command")) {
		command = append(command, v.AsString())
	}
	if len(command) == 0 {
		command = slices.Clone(agentCommands[ctyread.Text(want, "agent")])
	}
	return command
}
