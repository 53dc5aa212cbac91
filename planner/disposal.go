package planner

import (
	"fmt"
	"slices"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Disposal divides VMs that are off into those that can be destroyed with what is inside of them and with nothing else, and those
// that stay.
type Disposal struct {
	Goes  []spec.Address // by address
	Stays []Spared
}

// Spared is a VM that is off and stays.
type Spared struct {
	Address spec.Address
	Reason  string // in words
}

// Dispose looks for the recorded VMs that are off. One whose end is blocked stays, and so does one that a resource depends on which
// is neither inside of a VM that goes nor goes itself. o destroys.
func Dispose(c *spec.Config, s *state.Snapshot, w *World, o Options) (Disposal, error) {
	o.Rest, o.Scope = nil, Scope{}
	delta, err := Diff(c, s, w, o)
	if err != nil {
		return Disposal{}, err
	}
	var d Disposal
	for i := range delta.Changes {
		if delta.Changes[i].isOff() {
			d.Goes = append(d.Goes, delta.Changes[i].Address)
		}
	}
	for before := -1; len(d.Goes) > 0 && len(d.Goes) != before; {
		before, o.Scope.Targets = len(d.Goes), d.Goes
		if delta, err = Diff(c, s, w, o); err != nil {
			return Disposal{}, err
		}
		if d.spareDependencies(&delta); len(d.Goes) < before {
			continue
		}
		plan, err := Order(delta, w)
		if err != nil {
			return Disposal{}, fmt.Errorf("plan what is to be removed: %w", err)
		}
		d.spareBlocked(plan)
	}
	return d, nil
}

// isOff reports whether a change is one of a recorded VM that is off.
func (c *Change) isOff() bool {
	o := c.Object
	return natures[c.Kind].runs && c.Record != nil && o != nil && o.State == providers.StateOff && o.Running != nil && !*o.Running
}

// spareDependencies spares what a resource depends on that a destruction would take along, and that would outlive it otherwise.
func (d *Disposal) spareDependencies(delta *Delta) {
	for i := range delta.Changes {
		c := &delta.Changes[i]
		along := slices.ContainsFunc(append(slices.Clone(c.Around), c.Address), func(a spec.Address) bool { return slices.Contains(d.Goes, a) })
		if along || delta.Aside[c.Address] || c.Object == nil && c.Record == nil {
			continue
		}
		needs := reach(c.Address, delta.dependents)
		d.spare(func(vm spec.Address) string {
			if !needs[vm] {
				return ""
			}
			return fmt.Sprintf("%s depends on it, and stays", c.Address)
		})
	}
}

// spareBlocked spares what a blocked change would take part in.
func (d *Disposal) spareBlocked(plan *Plan) {
	for i := range plan.Changes {
		c := &plan.Changes[i]
		if c.Blocked == nil {
			continue
		}
		d.spare(func(vm spec.Address) string {
			switch {
			case vm == c.Address:
				return c.Blocked.Error()
			case slices.Contains(c.Around, vm), slices.Contains(c.Needs, vm):
				return c.Address.String() + ": " + c.Blocked.Error()
			}
			return ""
		})
	}
}

// spare lets the VMs stay for which why returns a reason.
func (d *Disposal) spare(why func(spec.Address) string) {
	d.Goes = slices.DeleteFunc(slices.Clone(d.Goes), func(vm spec.Address) bool {
		reason := why(vm)
		if reason != "" {
			d.Stays = append(d.Stays, Spared{vm, reason})
		}
		return reason != ""
	})
}
