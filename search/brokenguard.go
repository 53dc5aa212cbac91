package search

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vmctl/providers"
	"vmctl/spec"
)

// Guard names a property of vmctl that keeps a law.
type Guard string

// The guards that can be broken on purpose, one for each law.
const (
	BreakEffect  Guard = "1" // a change that says that it is done has happened
	BreakStart   Guard = "2" // a VM that is to run comes up once faults stop
	BreakForeign Guard = "3" // an object that is not vmctl's is left alone
	BreakVerdict Guard = "4" // an edit that is shown as live takes nothing down
	BreakStop    Guard = "5" // a failure stops the run
	BreakObserve Guard = "6" // observing writes nothing
	BreakBytes   Guard = "7" // the same world looks the same
	BreakRelease Guard = "8" // an object inside of a VM is released before the VM goes down
	BreakWork    Guard = "9" // work is looked for once more before what it is in goes with a VM that is replaced
)

// The guards of containers. Law 2 needs both: without them an apply without faults fails.
const (
	BreakPark Guard = "park" // a container gives its name to its successor
	BreakUse  Guard = "use"  // what a container of others uses is not removed
)

// brokenProvider is a provider with one guard broken.
type brokenProvider struct {
	providers.Provider
	guard     Guard
	dir       string
	count     *int
	faultless bool // faults have stopped
}

// Unwrap implements providers.Wrapper.
func (s *brokenProvider) Unwrap() providers.Provider { return s.Provider }

// Observe observes, and breaks the guards of observing.
func (s *brokenProvider) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv, err := s.Provider.Observe(ctx, q)
	*s.count++
	switch s.guard {
	case BreakObserve:
		_ = os.MkdirAll(s.dir, 0o700)                                                         //nolint:errcheck // it is to do harm
		_ = os.WriteFile(filepath.Join(s.dir, "looked"), []byte(fmt.Sprint(*s.count)), 0o600) //nolint:errcheck // it is to do harm
	case BreakBytes:
		inv.Objects = append(inv.Objects, providers.Object{
			Kind: "process", ID: "noise", Name: "noise", Findings: nil, Owner: &providers.Mark{
				ID: project.Lineage(), Of: "other", Address: spec.Address{Kind: spec.VM, Name: fmt.Sprintf("noise%d", *s.count)},
			},
		})
	case BreakUse:
		for i := range inv.Objects {
			if o := &inv.Objects[i]; o.Kind == spec.Container && o.Owner == nil {
				o.Holds = nil
			}
		}
	case BreakEffect, BreakStart, BreakForeign, BreakVerdict, BreakStop, BreakRelease, BreakWork, BreakPark:
	}
	return inv, err
}

// Steps plans, and breaks the guards of planning.
func (s *brokenProvider) Steps(c providers.Change) ([]providers.Step, error) {
	steps, err := s.Provider.Steps(c)
	switch {
	case s.guard == BreakVerdict && c.Action == providers.Update && c.Kind == spec.VM && len(steps) > 0 && c.Object != nil:
		down := steps[0]
		down.Op, down.Phase, down.After = "stop", providers.PhaseDown, nil
		for i := range steps {
			steps[i].After = append(slices.Clone(steps[i].After), 0)
		}
		steps = append([]providers.Step{down}, steps...)
		for i := range steps[1:] {
			steps[i+1].After = []int{i}
		}
	case s.guard == BreakPark && c.Kind == spec.Container:
		for i := range steps {
			if steps[i].Op == "park" {
				steps[i].Op = "stop"
			}
		}
	case s.guard == BreakRelease && c.Action == providers.Release:
		return nil, err
	}
	return steps, err
}

// Do carries out a step, and breaks the guards of steps.
func (s *brokenProvider) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	switch {
	case s.guard == BreakEffect && w.Op == "redefine", s.guard == BreakWork && w.Op == "check", s.guard == BreakStart && s.faultless && w.Op == "start":
		return providers.Result{ID: w.Object, Fingerprint: w.Expect, How: providers.Done}, nil
	case s.guard == BreakForeign:
		if all, err := filepath.Glob(filepath.Join(s.dir, "vms", "*-copy.json")); err == nil && len(all) > 0 {
			_ = os.Remove(all[0]) //nolint:errcheck // it is to do harm
		}
	}
	return s.Provider.Do(ctx, w, log)
}

// Broken looks for a law that a host breaks, and returns its number and how; "": none was
// broken in so many cases of Worlds, or of Edits for law 1. The same host gives the same answer.
func Broken(t *testing.T, host Host, cases int) (law, what string) {
	t.Helper()
	check := world
	if host.Break == BreakEffect {
		check = edit
	}
	dir := scratch(t, host)
	host.Survey = true
	for i := 0; i < cases && law == ""; i++ {
		rapid.Custom(func(r *rapid.T) int {
			defer func() {
				switch v := recover().(type) {
				case nil:
				case broken:
					law, what = v.law, v.what
				default:
					panic(v)
				}
			}()
			b := newHarness(t.Context(), r, host, dir)
			b.draw, b.total = r, newTally()
			check(b)
			return 0
		}).Example(i)
	}
	return law, what
}
