package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

func (a *app) outputCommand() *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use:   "output [NAME]",
		Short: "Evaluate the outputs of the files",
		Long: "Evaluate the outputs of the present files with the values that the last apply\n" +
			"recorded, and show them. If an output cannot be evaluated, it is shown as not known.\n" +
			"The command looks at no object.",
		Args: between(0, 1, "the name of an output"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				if raw {
					return rejected("usage", "--raw needs the name of an output")
				}
				return a.outputs(cmd.Context())
			}
			return a.output(cmd.Context(), args[0], raw)
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "write the value alone, without a line end")
	return cmd
}

func (a *app) allOutputs(ctx context.Context) ([]spec.Output, error) {
	p, err := a.open()
	if err != nil {
		return nil, err
	}
	snapshot, err := a.read(ctx, p)
	if err != nil {
		return nil, err
	}
	return outputsOf(p, snapshot), nil
}

// outputsOf evaluates the outputs. Each holds its own mistakes.
func outputsOf(p *project, s *state.Snapshot) []spec.Output {
	all, _ := p.config.Outputs(values(s)) //nolint:errcheck // see above
	return all
}

// outputChanges returns the outputs before and after a plan. A destruction has none: it evaluates no
// output.
func outputChanges(p *project, plan *planner.Plan, s *state.Snapshot) []view.OutputChange {
	after := values(s)
	for i := range plan.Changes {
		c := &plan.Changes[i]
		if c.Action == providers.Destroy || c.Action == providers.Forget {
			delete(after, c.Address)
		} else if v, ok := plan.Known[c.Address]; ok && c.Action != providers.NoOp {
			after[c.Address] = v
		}
	}
	outputs, _ := p.config.Outputs(after) //nolint:errcheck // an output holds its own mistakes
	return view.OutputChanges(outputsOf(p, s), outputs)
}

// warnOutputs says which outputs cannot be evaluated.
func (a *app) warnOutputs(all []spec.Output) {
	for _, o := range all {
		if o.Problem() != "" {
			view.Warning(a.errScreen(), "output "+quoted(o.Name)+" is not known: "+a.whereWrong(o))
		}
	}
}

// whereWrong returns the mistake of an output, with its file and line.
func (a *app) whereWrong(o spec.Output) string {
	for _, d := range o.Mistakes {
		if d.Severity == hcl.DiagError && d.Subject != nil {
			return fmt.Sprintf("%s:%d: %s", a.short(d.Subject.Filename), d.Subject.Start.Line, o.Problem())
		}
	}
	return o.Problem()
}

func (a *app) outputs(ctx context.Context) error {
	all, err := a.allOutputs(ctx)
	if err != nil {
		return err
	}
	a.warnOutputs(all)
	doc := view.OutputsDocument{FormatVersion: view.FormatVersion, Outputs: view.OutputsJSON(all)}
	a.show(doc, func(s view.Screen) {
		if len(all) == 0 {
			view.Note(s, "The files have no output block.")
			return
		}
		view.Outputs(s, all)
	})
	return nil
}

func (a *app) output(ctx context.Context, name string, raw bool) error {
	all, err := a.allOutputs(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, o := range all {
		names = append(names, o.Name)
		if o.Name != name {
			continue
		}
		if o.Problem() != "" {
			return newProblem(classFailed, "output_unknown", "read output "+quoted(name)+": it is not known: "+a.whereWrong(o))
		}
		if !o.Value.IsWhollyKnown() {
			return newProblem(classFailed, "output_unknown", "read output "+quoted(name)+": it is not known before what it refers to exists", a.commandLine("apply", planFlags{}))
		}
		a.show(view.OutputJSON(o), func(s view.Screen) {
			if raw {
				a.stdout.keep(write(a.stdout, view.RawOutput(o)))
				return
			}
			view.Note(s, view.RawOutput(o))
		})
		return nil
	}
	next := "the files have no output block"
	if len(names) > 0 {
		next = "the outputs are " + strings.Join(names, ", ")
	}
	return rejected("unknown_output", "read output "+quoted(name)+": there is none of that name", next)
}

// showOutputs lists the outputs at the end of an apply.
func (a *app) showOutputs(p *project, s *state.Snapshot) {
	all := outputsOf(p, s)
	if len(all) == 0 {
		return
	}
	a.warnOutputs(all)
	view.Heading(a.screen(), "Outputs")
	view.Outputs(a.screen(), all)
}
