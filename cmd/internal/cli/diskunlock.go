package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

func (a *app) diskUnlockCommand() *cobra.Command {
	var apply applyFlags
	cmd := &cobra.Command{
		Annotations: streams(),
		Use:         "unlock ADDR",
		Short:       "Release a lock whose holder is gone",
		Long: "Release the lock of a disk whose holder is gone, and do nothing else. The command\n" +
			"shows the step and asks. It also releases the lock if the disk's block says\n" +
			"on_stale_lock = \"refuse\": check first that the data on the disk is complete.\n\n" +
			"A lock whose holder lives is not released (exit code 6). If the disk has no stale\n" +
			"lock, the command says so, and the exit code is 0.",
		Args: one("the address of a disk"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.diskUnlock(cmd.Context(), args[0], apply) },
	}
	apply.register(cmd.Flags())
	return cmd
}

func (a *app) diskUnlock(ctx context.Context, name string, apply applyFlags) error {
	if err := apply.check(); err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	snapshot, _, err := a.readBeside(ctx, p)
	if err != nil {
		return err
	}
	if _, err := diskOf(p, snapshot, name); err != nil {
		return err
	}
	return a.carryOut(ctx, p, mission{
		command: "disk unlock", names: []string{name}, verb: "Unlock", title: "Unlock " + name, apply: apply,
		idle: func(plan *planner.Plan) string {
			var texts []string
			for _, c := range plan.Changes {
				texts = append(texts, c.Address.String()+": "+c.Reason+".")
			}
			return strings.Join(texts, " ")
		},
		options: func(s *state.Snapshot) (planner.Options, error) {
			o := planner.Options{Types: a.types, Project: p.owner}
			addr, err := diskOf(p, s, name)
			if err != nil {
				return o, err
			}
			o.Scope, o.Unlock = planner.Scope{Targets: []spec.Address{addr}, Alone: true}, map[spec.Address]bool{addr: true}
			return o, nil
		},
	})
}

// diskOf finds the one disk that a name means, in the files or the state.
func diskOf(p *project, s *state.Snapshot, name string) (spec.Address, error) {
	found, err := lookup(p, s, name)
	if err != nil {
		return spec.Address{}, err
	}
	if len(found) != 1 {
		return spec.Address{}, severalError(name, found)
	}
	if found[0].Kind != spec.Disk {
		return spec.Address{}, rejected("usage", found[0].String()+" is no disk")
	}
	return found[0], nil
}
