package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/cmd/internal/view/graph"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// graphRequest holds the flags of a graph.
type graphRequest struct {
	format  string
	plan    bool
	destroy bool
}

func (a *app) graphCommand() *cobra.Command {
	var r graphRequest
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Draw the resources and what they use, or the steps of a plan",
		Long: "Draw the resources of the files, the resources that each uses, and their providers.\n" +
			"An arrow leads from a resource to one that it uses. The command reads only the\n" +
			"files.\n\n" +
			"--plan draws the steps that apply would carry out. An arrow leads from a step to a\n" +
			"step that waits for it.\n\n" +
			"The format is dot, for Graphviz; mermaid, for Markdown; or svg, a picture that\n" +
			"needs no other program: vmctl graph --format=svg >graph.svg",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("format") && a.global.json {
				return rejected("usage", "graph writes a drawing or a document, and not both", "leave out --format or --json")
			}
			if err := r.check(); err != nil {
				return err
			}
			return a.graph(cmd.Context(), r)
		},
	}
	cmd.Flags().StringVar(&r.format, "format", "dot", "`dot`, mermaid or svg")
	cmd.Flags().BoolVar(&r.plan, "plan", false, "draw the steps of the plan")
	cmd.Flags().BoolVar(&r.destroy, "destroy", false, "with --plan: the steps that destroy would carry out")
	return cmd
}

// graphFormats lists the values of --format.
func graphFormats() []string { return []string{"dot", "mermaid", "svg"} }

func (r graphRequest) check() error {
	if r.destroy && !r.plan {
		return rejected("usage", "graph: --destroy is about a plan").advised(providers.Vmctl("graph", "--plan", "--destroy"))
	}
	for _, f := range graphFormats() {
		if r.format == f {
			return nil
		}
	}
	return rejected("usage", "read --format "+quoted(r.format)+": there is no such format", "the formats are "+strings.Join(graphFormats(), ", "))
}

func (a *app) graph(ctx context.Context, r graphRequest) error {
	drawn, err := a.drawn(ctx, r)
	if err != nil {
		return err
	}
	a.show(drawn.JSON(), func(view.Screen) {
		var text string
		switch r.format {
		case "dot":
			text = drawn.DOT()
		case "mermaid":
			text = drawn.Mermaid()
		case "svg":
			text = drawn.SVG()
		}
		a.stdout.keep(write(a.stdout, text))
	})
	return nil
}

func (a *app) drawn(ctx context.Context, r graphRequest) (graph.Graph, error) {
	if r.plan {
		return a.planGraph(ctx, r)
	}
	config, err := a.load()
	if err != nil {
		return graph.Graph{}, err
	}
	return resourceGraph(config), nil
}

// resourceGraph returns the graph of the files' resources, with their dependencies and
// providers.
func resourceGraph(c *spec.Config) graph.Graph {
	g := graph.Graph{Title: strings.TrimPrefix(c.Settings.Project+": ", ": ") + counted(len(c.Resources), "resource")}
	at := map[string]int{}
	for _, r := range c.Resources {
		at[r.Address.String()] = len(g.Nodes)
		g.Nodes = append(g.Nodes, graph.Node{ID: r.Address.String(), Kind: string(r.Address.Kind), Label: r.Address.String()})
	}
	for _, p := range c.Providers {
		at[p.Ref.String()] = len(g.Nodes)
		g.Nodes = append(g.Nodes, graph.Node{ID: p.Ref.String(), Kind: "provider", Label: p.Ref.String(), Last: true})
	}
	for from, r := range c.Resources {
		for _, used := range r.Uses {
			if to, ok := at[used.String()]; ok {
				g.Edges = append(g.Edges, graph.Edge{From: from, To: to, Kind: "uses"})
			}
		}
		if to, ok := at[r.Provider.String()]; ok {
			g.Edges = append(g.Edges, graph.Edge{From: from, To: to, Kind: "provider", Faint: true})
		}
	}
	return g
}

// planGraph returns the graph of the steps that apply, or destroy, would carry out now.
func (a *app) planGraph(ctx context.Context, r graphRequest) (g graph.Graph, err error) {
	wanted := planRequest{destroy: r.destroy}
	p, err := wanted.open(a)
	if err != nil {
		return g, err
	}
	made, err := a.makePlan(ctx, p, wanted)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, made.world.Close()) }()
	return stepGraph(made.mission.title, made.plan), nil
}

func stepGraph(title string, plan *planner.Plan) graph.Graph {
	g := graph.Graph{Title: title + ": " + counted(len(plan.Steps), "step")}
	for _, s := range plan.Steps {
		note := fmt.Sprintf("%d %s", s.ID, s.Phase)
		if s.Timeout > 0 {
			note += ", at most " + view.Limit(s.Timeout)
		}
		g.Nodes = append(g.Nodes, graph.Node{
			ID: fmt.Sprintf("step %d", s.ID), Kind: string(s.Phase), Label: s.Address.String() + " " + s.Op, Note: note,
		})
	}
	for _, s := range plan.Steps {
		for _, after := range s.After {
			g.Edges = append(g.Edges, graph.Edge{From: after, To: s.ID, Kind: "after"})
		}
	}
	return g
}
