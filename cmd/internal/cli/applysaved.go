package cli

import (
	"cmp"
	"context"

	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

// applySaved carries out the plan in a plan file, and nothing else: it plans again from the
// files that the plan was made of, and refuses a plan that differs.
func (a *app) applySaved(ctx context.Context, r applyRequest) error {
	f, err := a.readPlan(r.file)
	if err != nil {
		return err
	}
	if err := a.sameInstance(f, r.file); err != nil {
		return err
	}
	if err := a.sameFolder(f, r.file); err != nil {
		return err
	}
	p, err := a.openPlanned(ctx, f, &f.Source)
	if err != nil {
		return err
	}
	m := a.saved(p, f, r)
	m.check = func(plan *planner.Plan, s *state.Snapshot) error {
		seen, known := f.otherSecrets(p)
		if !known {
			return stale(r.file, seen, a.replan(f, r.file))
		}
		for _, path := range f.Source.Changed(p.source()) {
			seen = append(seen, path+" has changed since")
		}
		now, err := plan.Seal(s, p.key)
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

// openPlanned opens the project for a plan file. source replaces the files; nil: the files
// are read.
func (a *app) openPlanned(ctx context.Context, f planFile, source *spec.Source) (*project, error) {
	open := a.readSpec
	if f.Destroy {
		open = a.readToEnd
	} else {
		a.fetchElsewhere(ctx)
	}
	config, diags := open(source)
	if err := ctx.Err(); err != nil {
		return nil, interruptedReading("apply", err)
	}
	p, err := a.opened(config, diags)
	if err == nil && p.owner.DataDirID == "" { // nothing was applied yet
		p.owner.DataDirID = f.DataDirID
	}
	return p, err
}

// applyEquivalent plans the files as they are now, with the scope of a plan file, and carries
// out the new plan if it has the same steps and the same effect.
func (a *app) applyEquivalent(ctx context.Context, r applyRequest) error {
	f, err := a.readPlan(r.equivalent)
	if err != nil {
		return err
	}
	if err := a.sameInstance(f, r.equivalent); err != nil {
		return err
	}
	p, err := a.openPlanned(ctx, f, nil)
	if err != nil {
		return err
	}
	if p.owner.ID != f.ID {
		return otherProject(f, r.equivalent, p.config.Settings)
	}
	m := a.saved(p, f, r)
	m.check = func(plan *planner.Plan, s *state.Snapshot) error {
		now, err := plan.Seal(s, p.key)
		if err != nil {
			return err
		}
		seen, known := f.otherSecrets(p)
		if differs := f.Seal.DiffersInEffect(now); len(differs) > 0 || !known {
			if known {
				seen = append(seen, differs...)
			}
			return stale(r.equivalent, seen, a.replan(f, r.equivalent))
		}
		return nil
	}
	return a.carryOut(ctx, p, m)
}

// sameFolder refuses a plan in a folder without spec files, or with those of another project:
// relative paths in the plan's files would lead elsewhere. Other changes of the files do not
// matter here.
func (a *app) sameFolder(f planFile, path string) error {
	files, err := spec.SpecFiles(a.specDir())
	if err != nil || len(files) == 0 {
		return rejected("plan_of_another_folder", "apply: the plan in "+path+" is of project "+quoted(f.Project)+" ("+f.ID+
			"), and "+a.specDir()+" has none of its files", "name the folder of its files with -C DIR")
	}
	config := a.readAnyway()
	if now := config.Settings; now.ID != "" && now.ID != f.ID {
		return otherProject(f, path, now)
	}
	return nil
}

func otherProject(f planFile, path string, now spec.Settings) error {
	return rejected("plan_of_another_project", "apply: the plan in "+path+" is of project "+quoted(f.Project)+" ("+f.ID+
		"), and the files are of project "+quoted(now.Project)+" ("+now.ID+")", "name the folder of its files with -C DIR")
}

// saved returns the mission of a plan file. Its steps need no consent, since the user has
// read them; deferred ones do.
func (a *app) saved(p *project, f planFile, r applyRequest) mission {
	verbose, unasked := r.plan.verbose, r.apply.approved
	r.plan, r.apply.approved = f.Flags.flags(), true
	r.plan.verbose = verbose
	m := a.applying(p, r)
	m.unasked, m.file = unasked, cmp.Or(r.file, r.equivalent)
	if m.names = []string{r.file}; r.file == "" {
		m.names = []string{"--equivalent=" + r.equivalent}
	}
	if f.Destroy {
		m.verb, m.title, m.idle, m.outputs, m.enter = "Destroy", "Plan to destroy "+p.owner.Name, nothingToDestroy, false, nil
		m.destroy = true
	}
	return m
}

// replan returns the command that makes a plan file anew.
func (a *app) replan(f planFile, path string) string {
	more := []string{"--out=" + path}
	if len(f.Flags.Revert) > 0 {
		for _, addr := range f.Flags.Revert {
			more = append(more, "--revert="+addr)
		}
		return a.commandLine("drift", planFlags{}, more...)
	}
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
