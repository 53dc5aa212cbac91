package cli

import (
	"context"

	"vmctl/planner"
	"vmctl/state"
)

// applySaved carries out what a plan file says, and nothing else: it is planned
// anew from the files that the plan was made of, and has to come out the same.
func (a *app) applySaved(ctx context.Context, r applyRequest) error {
	f, err := a.readPlan(r.file)
	if err != nil {
		return err
	}
	if err := a.sameInstance(f, r.file); err != nil {
		return err
	}
	p, err := a.openFrom(&f.Source)
	if err != nil {
		return err
	}
	m := a.saved(p, f, r)
	m.check = func(plan *planner.Plan, s *state.Snapshot) error {
		var seen []string
		for _, path := range f.Source.Changed(p.config.Source()) {
			seen = append(seen, path+" has changed since")
		}
		now, err := plan.Seal(s)
		if err != nil {
			return err
		}
		if seen = append(seen, f.Seal.Differs(now)...); len(seen) > 0 {
			return stale(r.file, seen, a.replan(f, r.file))
		}
		return nil
	}
	return a.carryOut(ctx, p, m)
}

// applyEquivalent plans the files as they are now, with the scope of a plan file,
// and carries that out if it takes the same steps.
func (a *app) applyEquivalent(ctx context.Context, r applyRequest) error {
	f, err := a.readPlan(r.equivalent)
	if err != nil {
		return err
	}
	if err := a.sameInstance(f, r.equivalent); err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	if p.owner.ID != f.ID {
		return rejected("plan_of_another_project", "apply: the plan in "+r.equivalent+" is of project "+quoted(f.Project)+" ("+f.ID+
			"), and the files are of project "+quoted(p.owner.Name)+" ("+p.owner.ID+")", "name the folder of its files with -C DIR")
	}
	m := a.saved(p, f, r)
	m.check = func(plan *planner.Plan, s *state.Snapshot) error {
		now, err := plan.Seal(s)
		if err != nil {
			return err
		}
		if seen := f.Seal.DiffersInSteps(now); len(seen) > 0 {
			return stale(r.equivalent, seen, a.replan(f, r.equivalent))
		}
		return nil
	}
	return a.carryOut(ctx, p, m)
}

// saved is the mission of a plan file. What it says was read: nothing is asked.
func (a *app) saved(p *project, f planFile, r applyRequest) mission {
	verbose := r.plan.verbose
	r.plan, r.apply.approved = f.Flags.flags(), true
	r.plan.verbose = verbose
	m := a.applying(p, r)
	if f.Destroy {
		m.verb, m.title, m.idle, m.outputs, m.enter = "Destroy", "Plan to destroy "+p.owner.Name, nothingToDestroy, false, nil
		m.destroy = true
	}
	return m
}

// replan is the command that makes a plan file anew.
func (a *app) replan(f planFile, path string) string {
	more := []string{"--out=" + path}
	if f.Destroy {
		more = append(more, "--destroy")
	}
	return a.commandLine("plan", f.Flags.flags(), more...)
}

// sameInstance refuses a plan of another instance of the same files.
func (a *app) sameInstance(f planFile, path string) error {
	if a.global.env == f.Env {
		return nil
	}
	if f.Env == "" {
		return rejected("usage", "apply: the plan in "+path+" was made without --env", "leave it out")
	}
	return rejected("usage", "apply: the plan in "+path+" was made with --env="+f.Env, "say so: --env="+f.Env)
}
