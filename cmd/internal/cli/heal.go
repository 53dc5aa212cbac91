package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/internal/ctyread"
	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

// heal brings back what is recorded, should run and ended without being asked. It applies no edit,
// makes and removes nothing, and says nothing if there is nothing. While another run holds the lock
// it does nothing.
func (a *app) heal(ctx context.Context, r applyRequest) error {
	p, err := a.openExisting()
	if err != nil {
		return err
	}
	snapshot, holder, err := a.readRecords(ctx, p)
	if err != nil || holder != nil {
		return err
	}
	files := p.config
	a.onlyRecorded(p, snapshot)
	healing, err := a.findHealing(ctx, p, snapshot)
	if err != nil {
		return err
	}
	unread := false
	for _, left := range healing.Left {
		unread = unread || left.Unread
		view.Warning(a.errScreen(), left.Address.String()+" is left as it is: "+left.Reason)
	}
	for _, addr := range leftOff(files, snapshot) {
		view.Warning(a.errScreen(), addr.String()+" is left as it is: vmctl left it off, and the files say running = true")
	}
	if len(healing.Targets) > 0 {
		r.apply.lockTimeout, r.apply.approved, r.plan.noWait = 0, true, true
		m := mission{
			command: "apply", verb: "Heal", title: "Heal " + p.owner.Name, plan: r.plan, apply: r.apply, names: []string{"--heal"},
			options: func(*state.Snapshot) (planner.Options, error) {
				o := a.healOptions(p)
				o.Scope = planner.Scope{Targets: healing.Targets, Alone: true}
				return o, nil
			},
			recorded: true,
		}
		var locked *state.LockedError
		if err := a.carryOut(ctx, p, m); errors.As(err, &locked) {
			return nil
		} else if err != nil {
			return err
		}
	}
	if unread {
		return newProblem(classRefused, "unread", "apply --heal: something could not be read, and was left as it is")
	}
	return nil
}

// readRecords reads the state without the moves of the files: they are edits.
func (a *app) readRecords(ctx context.Context, p *project) (*state.Snapshot, *state.Holder, error) {
	holder, err := p.store.Holder(ctx)
	if err != nil || holder != nil {
		return nil, holder, err
	}
	snapshot, err := a.read(ctx, p)
	return snapshot, nil, err
}

func (a *app) healOptions(p *project) planner.Options {
	return planner.Options{Types: a.types, Project: p.owner, DigestKey: p.key, Heal: true, NoWait: true}
}

// findHealing observes what is recorded, and selects what is to be brought back. What a holder at
// work or another block keeps as it is is named.
func (a *app) findHealing(ctx context.Context, p *project, s *state.Snapshot) (h planner.Healing, err error) {
	o := a.healOptions(p)
	if o.Busy, err = p.atWork(ctx, s); err != nil {
		return h, err
	}
	world, err := planner.Observe(ctx, a.opener(p), p.config, s, o)
	if err != nil {
		return h, errors.Join(err, world.Close())
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	delta, err := planner.Diff(p.config, s, world, o)
	if err != nil {
		return h, err
	}
	h = planner.HealingOf(delta, s)
	for len(h.Targets) > 0 {
		o.Scope = planner.Scope{Targets: h.Targets, Alone: true}
		if delta, err = planner.Diff(p.config, s, world, o); err != nil {
			return h, err
		}
		plan, err := planner.Order(delta, world)
		if err != nil {
			return h, fmt.Errorf("plan what is to be healed: %w", err)
		}
		before := len(h.Targets)
		for i := range plan.Changes {
			c := &plan.Changes[i]
			if j := slices.Index(h.Targets, c.Address); j >= 0 && c.Blocked != nil {
				h.Targets = slices.Delete(h.Targets, j, j+1)
				h.Left = append(h.Left, planner.Left{Address: c.Address, Reason: c.Blocked.Error()})
			}
		}
		if len(h.Targets) == before {
			break
		}
	}
	return h, nil
}

// leftOff lists the addresses that vmctl left off, by command say, while the files want them to run.
func leftOff(files *spec.Config, s *state.Snapshot) []spec.Address {
	var all []spec.Address
	for _, addr := range recorded(s) {
		r, is := files.Resource(addr)
		applied := ctyread.KnownAttr(s.Records[addr].Values, "running")
		if is && !files.Recorded(addr) && wantsRunning(r) && applied != cty.NilVal && applied.False() {
			all = append(all, addr)
		}
	}
	return all
}
