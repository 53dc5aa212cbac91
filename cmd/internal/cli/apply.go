package cli

import (
	"context"

	"github.com/spf13/cobra"

	"vmctl/internal/ctyread"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

func (a *app) applyCommand() *cobra.Command {
	var r applyRequest
	cmd := &cobra.Command{
		Annotations: streams(),
		Use:         "apply [FILE]",
		Short:       "Make the real world as the files say",
		Long: "Make the same plan as `vmctl plan`, ask, and carry out its steps. Apply stops at\n" +
			"the first failure that matters, lists what was done, what failed and what was not\n" +
			"run, and says what to type next. If a change is blocked, no step is started.\n\n" +
			"FILE is a plan that `vmctl plan --out=FILE` kept. Apply carries out exactly that\n" +
			"plan, and asks nothing. If the world, the state or the files that the plan read\n" +
			"have changed since, the plan is stale, and nothing is done (exit code 6). With\n" +
			"--equivalent, apply makes a new plan of the present files, and carries it out\n" +
			"without a question if it has the same steps and the same values as FILE.\n\n" +
			"Objects inside a VM that is off cannot be read. When apply has started the VM, it\n" +
			"reads them, shows a second plan, and asks again. --auto-approve answers both\n" +
			"questions.\n\n" +
			"--heal is for a timer. It starts and recovers what should run by its record and ended\n" +
			"without being asked, and releases stale locks. It applies no edit of the files,\n" +
			"makes and removes nothing, asks nothing, and is silent if there is nothing to do or\n" +
			"another run holds the lock. What it leaves as it is, it names.\n\n" +
			"With --json, each line is a document: the plan, each event, the summary.",
		Args: between(0, 1, "at most the name of a plan file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				r.file = args[0]
			}
			return a.apply(cmd.Context(), r)
		},
	}
	r.plan.register(cmd.Flags())
	r.plan.registerReplace(cmd.Flags())
	r.plan.registerWait(cmd.Flags())
	r.apply.register(cmd.Flags())
	r.apply.registerWake(cmd.Flags())
	cmd.Flags().Var(reachFlag{&r.apply.reach}, "reach", "carry the plan out only if what it newly reaches has this `DIGEST`, as vmctl plan shows it")
	cmd.Flags().BoolVar(&r.heal, "heal", false, "only start and recover what ended without being asked, and release stale locks; for a timer")
	cmd.Flags().StringVar(&r.equivalent, "equivalent", "", "make a new plan, and carry it out without a question if it has the same steps and values as the one in `FILE`")
	return cmd
}

// applyRequest holds the flags and the plan file of an apply.
type applyRequest struct {
	plan       planFlags
	apply      applyFlags
	file       string // a plan file; "": none
	equivalent string // another one; "": none
	heal       bool
}

func (r applyRequest) check() error {
	named := r.plan.noWait || r.apply.wake || len(r.plan.targets)+len(r.plan.excludes)+len(r.plan.replace)+len(r.plan.allowReplace)+len(r.plan.allowDestroy)+len(r.plan.allowInterrupt)+len(r.plan.allowDirty) > 0
	switch {
	case r.file != "" && r.equivalent != "":
		return rejected("usage", "apply takes a plan file, or --equivalent with one, and not both")
	case r.heal && (named || r.file+r.equivalent+r.apply.reach != ""):
		return rejected("usage", "apply: --heal takes no plan file, --target, --exclude, --replace, --wait, --wake, --reach or --allow-…")
	case named && r.file+r.equivalent != "":
		return rejected("usage", "apply: a saved plan fixes these flags: leave out --target, --exclude, --replace, --wait, --wake and --allow-…")
	default:
		return r.apply.check()
	}
}

func (a *app) apply(ctx context.Context, r applyRequest) error {
	if err := r.check(); err != nil {
		return err
	}
	switch {
	case r.heal:
		return a.heal(ctx, r)
	case r.file != "":
		return a.applySaved(ctx, r)
	case r.equivalent != "":
		return a.applyEquivalent(ctx, r)
	}
	p, err := a.openFetching(ctx, "apply")
	if err != nil {
		return err
	}
	return a.carryOut(ctx, p, a.applying(p, r))
}

// applying returns the mission of an apply.
func (a *app) applying(p *project, r applyRequest) mission {
	return mission{
		command: "apply", verb: "Apply", title: "Plan for " + p.owner.Name, plan: r.plan, apply: r.apply, outputs: true,
		options: func(s *state.Snapshot) (planner.Options, error) { return a.options(p, s, r.plan) },
		enter:   a.howToEnter,
	}
}

// howToEnter returns the command that opens a shell in the first VM that the plan created, if
// its provider supports logins.
func (a *app) howToEnter(w work) []string {
	for _, c := range w.plan.Changes {
		if c.Kind != spec.VM || c.Action != providers.Create || !ctyread.True(c.Change.Want, "running") {
			continue
		}
		if _, ok := providers.Ability[providers.Reacher](w.world.System(c.System).Provider); ok {
			return []string{a.commandLine("vm shell", planFlags{}, c.Address.String()) + " opens a shell in it"}
		}
	}
	return nil
}
