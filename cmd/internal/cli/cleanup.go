package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

func (a *app) cleanupCommand() *cobra.Command {
	var plan planFlags
	var apply applyFlags
	stopped := false
	cmd := &cobra.Command{
		Annotations: streams(),
		Use:         "cleanup [ADDR... | engine.NAME/KIND/OBJECT]",
		Short:       "Remove what leaked, VMs that are off, or one object of an engine",
		Long: "Without an argument, remove what vmctl leaks shows and nothing accounts for: objects that\n" +
			"were made from this data directory, bear the mark of this project, and are in neither the\n" +
			"files nor the state, and records of objects that are gone. The command shows a plan and asks.\n" +
			"With the ADDR of such an object, remove that one; also if another data directory made it.\n\n" +
			"--stopped destroys the VMs that are off instead, with what is inside of them. One in which\n" +
			"work may be that exists nowhere else, that is protected, or that a resource depends on\n" +
			"which stays is skipped. A failure does not keep the others.\n\n" +
			"engine.NAME/KIND/OBJECT is one image, volume, network or container of an engine that neither\n" +
			"the files nor the state name: engine.here/container/old, engine.here/image/docker.io/demo/box:1.\n" +
			"One that is declared, that bears the mark of another project, that runs or that a container\n" +
			"uses is not removed (exit code 6), and nothing is forced. A removed volume is lost with its\n" +
			"data. Images bear no mark: one that no container uses may be another project's.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch isCastoff := slices.ContainsFunc(args, isCastoff); {
			case stopped && len(args) > 0:
				return rejected("usage", "cleanup takes addresses or --stopped, and not both")
			case stopped && len(plan.allowDirty)+len(plan.allowInterrupt) > 0:
				return rejected("usage", "cleanup --stopped skips what would be lost or interrupted: leave out --allow-dirty and --allow-interrupt")
			case isCastoff && len(args) > 1:
				return rejected("usage", "cleanup takes one object of an engine at a time")
			case isCastoff && len(plan.allowDirty)+len(plan.allowInterrupt) > 0:
				return rejected("usage", "cleanup of an object of an engine takes neither --allow-dirty nor --allow-interrupt")
			case isCastoff:
				return a.cleanupCastoff(cmd.Context(), args[0], apply)
			case stopped:
				return a.cleanupStopped(cmd.Context(), plan, apply)
			default:
				return a.cleanupLeaks(cmd.Context(), args, plan, apply)
			}
		},
	}
	cmd.Flags().BoolVar(&stopped, "stopped", false, "destroy the VMs that are off and hold no work that exists nowhere else")
	cmd.Flags().BoolVar(&plan.verbose, "verbose", false, "show every detail")
	plan.registerInterrupt(cmd.Flags())
	apply.register(cmd.Flags())
	return cmd
}

// isCastoff reports whether a text names an object of an engine. An address may hold a slash, too, in its key.
func isCastoff(text string) bool {
	_, err := spec.ParseAddress(text)
	return err != nil && strings.Contains(text, "/")
}

// cleanupLeaks removes orphans, and the records of what is gone: those of some addresses, or without an address all that were
// made from this data directory.
func (a *app) cleanupLeaks(ctx context.Context, names []string, plan planFlags, apply applyFlags) error {
	if err := apply.check(); err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	return a.carryOut(ctx, p, mission{
		command: "cleanup", names: names, verb: "Cleanup", title: "Plan to clean up " + p.owner.Name, plan: plan, apply: apply, spends: true, cleans: true, picks: true,
		idle: func(*planner.Plan) string { return "Nothing leaked that a clean-up removes." },
		options: func(s *state.Snapshot) (planner.Options, error) {
			o := planner.Options{Types: a.types, Rest: []planner.Deferred{}}
			var err error
			if o.Allow.Dirty, err = anyAddressSet(p, s, plan.allowDirty); err != nil {
				return o, err
			}
			if o.Allow.Interrupt, err = anyAddressSet(p, s, plan.allowInterrupt); err != nil {
				return o, err
			}
			found, searched, err := a.findLeaks(ctx, p, s, nil)
			if err != nil {
				return o, err
			}
			p.config = searched
			o.Scope.Targets, err = a.leaked(found, names)
			if len(o.Scope.Targets) == 0 || err != nil {
				return o, err
			}
			o.Rest, o.Scope.Alone, o.Inward, o.CleanUp = nil, true, true, map[spec.Address]bool{}
			for _, addr := range o.Scope.Targets {
				o.CleanUp[addr] = true
			}
			return o, nil
		},
	})
}

// leaked returns the addresses of leaks that are to be removed: those that the user names, else all that go by themselves.
func (a *app) leaked(found planner.Leaks, names []string) ([]spec.Address, error) {
	var all []spec.Address
	for _, leak := range found.All {
		if leak.Goes && !slices.Contains(all, leak.Address) {
			all = append(all, leak.Address)
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	all = nil
	for _, name := range names {
		addr, err := spec.ParseAddress(name)
		if err != nil {
			return nil, rejected("usage", fmt.Sprintf("cleanup: read %s: %v", quoted(name), err), a.commandLine("leaks", planFlags{})+" shows the addresses")
		}
		if !slices.ContainsFunc(found.All, func(l planner.Leak) bool { return l.Address == addr && (l.Goes || l.Orphan) }) {
			return nil, newProblem(classRefused, "not_leaked", "cleanup: "+name+" stays: it is no orphan, and no record of an object that is gone",
				a.commandLine("leaks", planFlags{})+" shows what leaked")
		}
		all = append(all, addr)
	}
	return all, nil
}

// skippedVM is a VM that is off and that a clean-up leaves as it is.
type skippedVM struct {
	Address spec.Address `json:"address"`
	Reason  string       `json:"reason"`
}

// cleanedDocument says what became of the VMs that were off.
type cleanedDocument struct {
	FormatVersion string         `json:"format_version"`
	Type          string         `json:"type"` // cleaned
	Cleaned       []spec.Address `json:"cleaned"`
	Failed        []spec.Address `json:"failed"`
	Skipped       []skippedVM    `json:"skipped"`
}

// cleanupStopped destroys the VMs that are off, and counts.
func (a *app) cleanupStopped(ctx context.Context, plan planFlags, apply applyFlags) error {
	if err := apply.check(); err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	apply.keepGoing = true
	doc := cleanedDocument{FormatVersion: view.FormatVersion, Type: "cleaned", Cleaned: []spec.Address{}, Failed: []spec.Address{}, Skipped: []skippedVM{}}
	var targets []spec.Address
	told := false
	err = a.carryOut(ctx, p, mission{
		command: "cleanup", names: []string{"--stopped"}, verb: "Cleanup", title: "Plan to clean up " + p.owner.Name, plan: plan, apply: apply, destroy: true, picks: true,
		idle: func(*planner.Plan) string { return "There is no VM that is off and can be removed." },
		options: func(s *state.Snapshot) (o planner.Options, err error) {
			o = planner.Options{Types: a.types, Project: p.owner, Destroy: true, Rest: []planner.Deferred{}}
			if targets, doc.Skipped, err = a.findStopped(ctx, p, s, o); len(targets) > 0 {
				o.Rest, o.Scope.Targets = nil, targets
			}
			if !a.global.json {
				for _, vm := range doc.Skipped {
					view.Note(a.errScreen(), fmt.Sprintf("%s is skipped: %s", vm.Address, vm.Reason))
				}
			}
			return o, err
		},
		ended: func(s executor.Summary) {
			told = true
			for _, vm := range targets {
				if isCleaned(s, vm) {
					doc.Cleaned = append(doc.Cleaned, vm)
				} else {
					doc.Failed = append(doc.Failed, vm)
				}
			}
			a.cleaned(doc)
		},
	})
	if !told && err == nil {
		a.cleaned(doc)
	}
	return err
}

// cleaned tells what became of the VMs that were off.
func (a *app) cleaned(doc cleanedDocument) {
	if a.global.json {
		a.line(doc)
		return
	}
	view.Note(a.screen(), fmt.Sprintf("%d cleaned, %d failed, %d skipped.", len(doc.Cleaned), len(doc.Failed), len(doc.Skipped)))
}

// isCleaned reports whether every step of a VM was done.
func isCleaned(s executor.Summary, vm spec.Address) bool {
	failed := slices.ContainsFunc(s.Failed, func(r executor.StepResult) bool { return r.Step.Address == vm })
	left := slices.ContainsFunc(s.NotRun, func(step planner.Step) bool { return step.Address == vm })
	return !failed && !left
}

// findStopped lists the recorded VMs that are off and can be destroyed with what is inside of them, and those that are off and stay. o
// destroys.
func (a *app) findStopped(ctx context.Context, p *project, s *state.Snapshot, o planner.Options) (targets []spec.Address, skipped []skippedVM, err error) {
	skipped, o.Rest = []skippedVM{}, nil
	if o.Busy, err = p.atWork(ctx, s); err != nil {
		return nil, skipped, err
	}
	world, err := planner.Observe(ctx, a.opener(p), p.config, s, o)
	if err != nil {
		return nil, skipped, errors.Join(err, world.Close())
	}
	found, err := planner.Dispose(p.config, s, world, o)
	for _, vm := range found.Stays {
		skipped = append(skipped, skippedVM(vm))
	}
	return found.Goes, skipped, errors.Join(err, world.Close())
}
