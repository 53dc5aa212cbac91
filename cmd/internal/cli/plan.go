package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/state"
)

func (a *app) planCommand() *cobra.Command {
	var r planRequest
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what apply would do, and change nothing",
		Long: "Compare the files, the state and the real world, and show every difference with\n" +
			"the exact steps that will close it. Plan changes nothing and takes no lock.\n\n" +
			"With --target, the plan also contains what the target needs. With --exclude, it\n" +
			"also leaves out what needs the excluded resource. A target that needs an excluded\n" +
			"resource is an error.\n\n" +
			"--out keeps the plan in a file. `vmctl apply FILE` then carries out exactly that\n" +
			"plan. The file contains the spec files and all variables that are not sensitive.\n\n" +
			"The exit code is 0, or 6 if something could not be read. With --detailed-exitcode\n" +
			"it is 2 if there are changes.",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("out") {
				if err := a.checkOut(r.out); err != nil {
					return err
				}
			}
			if err := r.look.check(a.global.json); err != nil {
				return err
			}
			if r.destroy && len(r.flags.replace) > 0 {
				return rejected("usage", "plan takes --destroy or --replace, and not both")
			}
			return a.plan(cmd.Context(), r)
		},
	}
	r.flags.register(cmd.Flags())
	r.flags.registerReplace(cmd.Flags())
	r.flags.registerWait(cmd.Flags())
	r.look.register(cmd.Flags())
	new(applyFlags).registerLock(cmd.Flags()) // accepted as apply accepts it, and ignored: plan takes no lock
	cmd.Flags().BoolVar(&r.destroy, "destroy", false, "show what destroy would do")
	cmd.Flags().StringVar(&r.out, "out", "", "keep the plan in `FILE`, for vmctl apply")
	cmd.Flags().BoolVar(&r.detailed, "detailed-exitcode", false, "exit with 2 if there are changes, blocked ones included")
	return cmd
}

// planRequest holds the flags of a plan.
type planRequest struct {
	flags    planFlags
	look     planLook
	out      string // a file; "": none
	destroy  bool
	detailed bool
}

func (r planRequest) mission(p *project) mission {
	if r.destroy {
		return mission{command: "destroy", plan: r.flags, destroy: true, title: "Plan to destroy " + p.owner.Name, idle: nothingToDestroy}
	}
	return mission{command: "apply", plan: r.flags, title: "Plan for " + p.owner.Name}
}

func (r planRequest) open(a *app) (*project, error) {
	if r.destroy {
		return a.openToEnd()
	}
	return a.open()
}

// madePlan is a plan with the mission, world and state that it was made from.
type madePlan struct {
	mission  mission
	plan     *planner.Plan
	world    *planner.World // the caller closes it
	snapshot *state.Snapshot
	holder   *state.Holder // of the run lock; nil: nobody
}

// makePlan plans without taking a lock.
func (a *app) makePlan(ctx context.Context, p *project, r planRequest) (made madePlan, err error) {
	made.mission = r.mission(p)
	made.snapshot, made.holder, err = a.readBeside(ctx, p)
	if err != nil {
		return made, err
	}
	o, err := a.options(p, made.snapshot, r.flags)
	if err != nil {
		return made, err
	}
	o.Destroy = r.destroy
	o.DigestKey = p.key
	o.Held = made.holder != nil
	if o.Busy, err = p.atWork(ctx, made.snapshot); err != nil {
		return made, err
	}
	o.Visitors = p.visitors
	made.plan, made.world, err = planner.Make(ctx, a.opener(p), p.config, made.snapshot, o)
	if err != nil {
		return made, err
	}
	a.logObserved(ctx, made.world)
	return made, nil
}

func (a *app) plan(ctx context.Context, r planRequest) (err error) {
	if !r.destroy && len(r.flags.revert) == 0 {
		a.fetchElsewhere(ctx)
	}
	p, err := r.open(a)
	if ctx.Err() != nil {
		return interruptedReading("plan", ctx.Err())
	}
	if err != nil {
		return err
	}
	if p.flawed != nil && r.out != "" { // apply reads the spec from the file again
		return p.flawed
	}
	if r.out != "" { // apply uses the same IDs
		if err := errors.Join(a.chooseDataDirID(p), a.makeDigestKey(p)); err != nil {
			return err
		}
	}
	made, err := a.makePlan(ctx, p, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.world.Close()) }()
	plan, m := made.plan, made.mission
	screen, doc := a.screen(), a.planDocument(p, m, plan, made.snapshot)
	switch {
	case a.global.json:
		a.document(doc)
		screen.W = nil // only to be kept
	case r.look.format == "markdown":
		a.showMarkdown(doc, r.look, r.out)
		screen.W = nil
	case r.look.format == "terraform-json":
		a.document(view.PlanTerraform(doc))
		screen.W = nil
	}
	review := view.Plan(screen, plan, view.PlanOptions{
		Targets: m.plan.targets, Pulls: m.pulls(), Warnings: doc.Warnings, Title: m.title, Destroys: m.destroy, Idle: m.idles(plan), Verbose: r.flags.verbose, Holder: made.holder, Providers: p.config.Providers,
		Offer: view.Offer{Apply: a.offerOf(r, m, plan)}, Own: a.ownFlags(m.plan), Outputs: doc.Outputs,
	})
	if r.out != "" {
		if err := a.keepPlan(r, p, made, reviewed{doc, review}); err != nil {
			return err
		}
	}
	switch {
	case r.detailed && (len(plan.Steps) > 0 || plan.Summary.Blocked+plan.Summary.Refused+plan.Summary.Retained > 0):
		return status{code: 2}
	case plan.Summary.Unknown > 0:
		return status{code: classRefused.code()}
	default:
		return nil
	}
}

// planDocument returns a plan as it is shown with --json.
func (a *app) planDocument(p *project, m mission, plan *planner.Plan, s *state.Snapshot) view.PlanDocument {
	doc := view.PlanJSON(plan, a.ownFlags(m.plan))
	doc.Outputs = outputChanges(p, plan, s)
	doc.Targets, doc.Warnings = m.plan.targets, a.warnings(p, plan)
	return doc
}

// offerOf returns the command that carries out a plan: from its file if it was saved, else as
// offer says.
func (a *app) offerOf(r planRequest, m mission, plan *planner.Plan) string {
	if r.out != "" && !plan.Forbidden() {
		return a.commandLine("apply", planFlags{kept: true}, r.out)
	}
	return a.offer(m, plan)
}

// keepPlan saves a plan. It refuses one with blocked changes.
func (a *app) keepPlan(r planRequest, p *project, made madePlan, shown reviewed) error {
	plan := made.plan
	if plan.Forbidden() {
		e := newProblem(classRefused, "blocked", "plan: nothing was saved: "+view.Obstacles(plan.Summary))
		if len(plan.Steps) > 0 {
			e.Next = []string{"to save the rest: " + a.offer(mission{command: "plan", plan: r.flags, names: []string{"--out=" + r.out}}, plan)}
		}
		return e
	}
	return a.savePlan(r, p, made, shown)
}

// offer returns the command that carries out a plan without its blocked changes. A clean-up names what is left.
func (a *app) offer(m mission, plan *planner.Plan) string {
	f := m.plan
	f.excludes = slices.Clip(f.excludes)
	blocked := map[string]bool{}
	hasSteps := map[int]bool{}
	for i := range plan.Steps {
		hasSteps[plan.Steps[i].Change] = true
	}
	var free []string // addresses to name in place of a blocked target
	for i := range plan.Changes {
		c := &plan.Changes[i]
		switch {
		case c.Blocked != nil && c.Blocked.Kind() != planner.Retained && !c.Blocked.Skipped:
			blocked[c.Address.String()] = true
			if c.Record != nil || c.Want != nil { // not an orphan, which goes with what it is inside of
				f.excludes = append(f.excludes, c.Address.String())
			}
		case hasSteps[i]:
			free = append(free, c.Address.String())
		}
	}
	if m.cleans && len(blocked) > 0 {
		f.excludes = nil
		return a.commandLine(m.command, f, free...)
	}
	if slices.ContainsFunc(f.targets, func(t string) bool { return blocked[t] }) { // no address may be both a target and excluded
		f.targets = slices.DeleteFunc(slices.Concat(f.targets, free), func(t string) bool { return blocked[t] })
		slices.Sort(f.targets)
		f.targets, f.excludes = slices.Compact(f.targets), m.plan.excludes
	}
	return a.commandLine(m.command, f, m.names...)
}
