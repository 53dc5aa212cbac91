package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

func (a *app) showCommand() *cobra.Command {
	var look planLook
	cmd := &cobra.Command{
		Use:   "show ADDRESS|FILE",
		Short: "Show everything about one resource: wanted, observed, recorded; or a saved plan",
		Long: "ADDRESS names a resource: show its block, its object and its record.\n\n" +
			"FILE is a plan that `vmctl plan --out=FILE` kept: show it as plan showed it, byte for\n" +
			"byte on a terminal of the same width. Neither the files nor the state are read.",
		Args: one("the address of a resource, or a plan file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := look.check(a.global.json); err != nil {
				return err
			}
			if a.isPlanFile(args[0]) {
				return a.showSavedPlan(args[0], look)
			}
			if look.format != "text" {
				return rejected("usage", "show: --format="+look.format+" is for plan files")
			}
			return a.showResource(cmd.Context(), args[0])
		},
	}
	look.register(cmd.Flags())
	return cmd
}

// isPlanFile reports whether an argument is a plan file and no address: it begins like one, or can
// only be a path. The documents name plan files *.vmplan.
func (a *app) isPlanFile(name string) bool {
	text, err := os.ReadFile(a.absolute(name))
	if err == nil && bytes.HasPrefix(text, []byte(planOpening)) {
		return true
	}
	addr, perr := spec.ParseAddress(name)
	_, known := spec.Shape(addr.Kind)
	return (perr != nil || !known) && (err == nil || strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".vmplan"))
}

// showSavedPlan shows a saved plan as it was shown when it was made.
func (a *app) showSavedPlan(path string, look planLook) error {
	f, err := a.readPlan(path)
	if err != nil {
		return err
	}
	switch look.format {
	case "markdown":
		a.showMarkdown(f.Plan, look, path)
		return nil
	case "terraform-json":
		a.document(view.PlanTerraform(f.Plan))
		return nil
	}
	if f.Review == nil && !a.global.json {
		return newProblem(classUnreadableState, "plan_file_without_review",
			fmt.Sprintf("show %s: vmctl %s wrote it, and kept no text of it", path, f.Version), a.commandLine("show", planFlags{}, path, "--json")+" shows it as a document")
	}
	a.show(f.Plan, func(s view.Screen) { view.Reviewed(s, f.Review) })
	return nil
}

func (a *app) showResource(ctx context.Context, name string) (err error) {
	s, err := a.observe(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	found, err := lookup(s.project, s.snapshot, name)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return severalError(name, found)
	}
	v := s.at(found[0])
	if v.object != nil {
		concealed := planner.Shown(*v.object, v.resource, v.record)
		v.object = &concealed
	}
	delta, err := planner.Diff(s.project.config, s.snapshot, s.world, s.options)
	if err != nil {
		return err
	}
	var change *planner.Change
	for i := range delta.Changes {
		if delta.Changes[i].Address == v.address {
			change = &delta.Changes[i]
		}
	}
	status := a.statusOf(ctx, v, change)
	if v.object != nil && v.system != nil {
		if facts := describe(ctx, v.system, []providers.Object{*v.object}); facts != nil {
			status.Facts = view.FactsJSON(facts[0])
		}
	}
	shown := view.Shown{Status: status, Resource: v.resource, Object: v.object, Record: v.record, Own: s.own}
	a.show(view.ShowJSON(shown), func(screen view.Screen) { view.Show(screen, shown) })
	return nil
}
