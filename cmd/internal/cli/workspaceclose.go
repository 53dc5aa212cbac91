package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/ctyread"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/workspace"
	"vmctl/spec"
	"vmctl/state"
)

func (a *app) workspaceCloseCommand() *cobra.Command {
	var plan planFlags
	var apply applyFlags
	cmd := &cobra.Command{
		Annotations: streams(),
		Use:         "close BRANCH",
		Short:       "Fetch the commits of a workspace, and remove it",
		Long: "Bring the commits of a workspace to this host, as workspace fetch does, ask, and destroy the\n" +
			"workspace. While it has work that exists nowhere else, it stays. At the end the block\n" +
			"that workspace open wrote is removed, unless somebody has edited it; no other block is.\n\n" +
			"BRANCH may also be the name of the workspace.",
		Args: one("a branch"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.workspaceClose(cmd.Context(), args[0], plan, apply)
		},
	}
	apply.register(cmd.Flags())
	cmd.Flags().BoolVar(&plan.verbose, "verbose", false, "show every detail")
	plan.registerInterrupt(cmd.Flags())
	return cmd
}

type closedDocument struct {
	FormatVersion string `json:"format_version"`
	Type          string `json:"type"`
	Address       string `json:"address"`
	Branch        string `json:"branch"`
	File          string `json:"file"`
	Removed       bool   `json:"removed"` // the block, from the file
}

func (a *app) workspaceClose(ctx context.Context, name string, plan planFlags, apply applyFlags) error {
	if err := apply.check(); err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	addr, err := a.workspaceOf(p, name)
	if err != nil {
		return err
	}
	if err := a.unneeded(p.config, addr); err != nil {
		return err
	}
	if err := a.fetchToClose(ctx, addr, plan); err != nil {
		return err
	}
	var removal error
	err = a.carryOut(ctx, p, mission{
		command: "workspace close", names: []string{name}, verb: "Close", title: "Plan to close " + addr.String(), plan: plan, apply: apply,
		idle: func(*planner.Plan) string { return addr.String() + " does not exist." }, destroy: true,
		options: func(s *state.Snapshot) (planner.Options, error) {
			o, err := a.options(p, s, plan)
			o.Scope.Targets = []spec.Address{addr}
			return o, err
		},
		check: func(plan *planner.Plan, _ *state.Snapshot) error { return a.alone(addr, plan) },
		// Still under the run lock: whoever opens it again has to wait, and then sees that the block is gone.
		after: func() { removal = a.closed(ctx, p, addr) },
	})
	return errors.Join(err, removal)
}

// unneeded fails if the spec would have mistakes without the block of a workspace that vmctl wrote: something refers to it.
func (a *app) unneeded(c *spec.Config, addr spec.Address) error {
	f, err := a.written(c, addr)
	if err != nil || f == nil {
		return err
	}
	diags, files := a.withFile(c, f.name, f.text)
	if !diags.HasErrors() {
		return nil
	}
	e := newProblem(classRefused, "needed", "close "+addr.String()+": nothing was done: without its block the files would have mistakes: "+summaries(diags),
		"remove what refers to it first")
	if a.global.json {
		e.err = a.mistakes(diags, files)
	} else {
		a.warn(diags, files)
	}
	return e
}

// alone fails if a plan destroys something else with the workspace.
func (a *app) alone(addr spec.Address, plan *planner.Plan) error {
	var others []spec.Address
	for _, c := range plan.Changes {
		if c.Address != addr && c.Action == providers.Destroy {
			others = append(others, c.Address)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return newProblem(classRefused, "needed", "close "+addr.String()+": nothing was done: it is needed by "+strings.Join(view.Addresses(others), ", "),
		"remove that first, or all of it: "+a.commandLine("destroy", planFlags{targets: []string{addr.String()}}))
}

// fetchToClose brings the commits of a workspace to this host. Without the workspace, or while its VM is off, it does nothing:
// the plan says what that means. If the work in it may be lost, it fetches what it can.
func (a *app) fetchToClose(ctx context.Context, addr spec.Address, plan planFlags) error {
	err := a.inWorkspace(ctx, addr.String(), "vmctl workspace close", "", func(w enteredWorkspace) error {
		half := slices.ContainsFunc(w.object.Findings, func(f providers.Finding) bool { return f.Kind == providers.FindPartial })
		if half || ctyread.Text(ctyread.Attr(w.policy(), "sync"), "on_destroy") == "save" { // saved by the destruction itself
			return nil
		}
		lost := slices.Contains(plan.allowDirty, addr.String())
		m, err := a.exchanged(ctx, w, "fetch", func(ctx context.Context, x workspace.Exchanger, w enteredWorkspace) (workspace.Moved, error) {
			if !lost {
				if err := a.checkClean(w); err != nil {
					return workspace.Moved{}, err
				}
			}
			return x.Fetch(ctx, w.object.ID, "")
		})
		switch {
		case err != nil && lost:
			view.Warning(a.errScreen(), err.Error())
		case err != nil:
			return err
		case !a.global.json:
			view.Moved(a.screen(), addr.String(), m.Branch, m.From, m.To)
		}
		return nil
	})
	if isDown(err) {
		return nil
	}
	var early before
	if errors.As(err, &early) {
		return early.err
	}
	return err
}

// closed removes the block of a workspace that is gone, if vmctl wrote it, and says so.
func (a *app) closed(ctx context.Context, p *project, addr spec.Address) error {
	r, _ := p.config.Resource(addr)
	doc := closedDocument{
		FormatVersion: view.FormatVersion, Type: "closed", Address: addr.String(),
		Branch: ctyread.Text(r.Want, "branch"), File: a.short(r.Range.Filename),
	}
	err := a.editing(ctx, p, "workspace close", func() (err error) {
		doc.Removed, err = a.removeBlock(addr)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove the block of %s, which is gone: %w", addr, err)
	}
	if a.global.json {
		a.line(doc)
		return nil
	}
	if doc.Removed {
		view.Note(a.screen(), fmt.Sprintf("Removed the block of %s from %s.", addr, doc.File))
		return nil
	}
	view.Note(a.screen(), fmt.Sprintf("The block of %s stays in %s, line %d: the next apply makes the workspace again.", addr, doc.File, r.Range.Start.Line))
	return nil
}
