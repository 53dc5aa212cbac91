package cli

import (
	"context"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/state"
)

func (a *app) stateRepairCommand() *cobra.Command {
	var dry bool
	var wait lockWait
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Make a damaged state readable",
		Long: "Make a damaged state readable: go back to the last snapshot that is whole, apply the\n" +
			"journal up to its damage, and keep a copy of each damaged file (.corrupt). The next\n" +
			"plan finds objects that have no record any more by their marks. A state that is whole\n" +
			"stays unchanged.",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dry {
				return a.stateDiagnose(cmd.Context())
			}
			return a.stateRepair(cmd.Context(), wait)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would be done, and change nothing")
	wait.register(cmd.Flags())
	return cmd
}

func (a *app) stateDiagnose(ctx context.Context) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	holder, err := p.store.Holder(ctx)
	if err != nil {
		return err
	}
	repair, err := p.store.Diagnose(ctx)
	if err != nil {
		return err
	}
	if holder != nil { // its unfinished writes look like damage
		view.Warning(a.errScreen(), view.HolderText(*holder)+": what it writes may not be whole yet")
	}
	a.showRepair(repair, view.StateRepairDocument{DryRun: true})
	return nil
}

func (a *app) stateRepair(ctx context.Context, wait lockWait) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	repair, err := p.store.Repair(ctx, a.lockOwner(p, "state repair", wait))
	if err != nil {
		return err
	}
	a.showRepair(repair, view.StateRepairDocument{})
	return nil
}

func (a *app) showRepair(r state.Repair, doc view.StateRepairDocument) {
	doc.Fill(r)
	next := a.commandLine("plan", planFlags{})
	switch {
	case doc.DryRun:
		next = a.commandLine("state repair", planFlags{})
	case r.Records == 0:
		next = a.commandLine("state rebuild", planFlags{})
	}
	a.show(doc, func(s view.Screen) { view.StateRepair(s, doc, next) })
}
