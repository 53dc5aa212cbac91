package planner

import (
	"fmt"
	"maps"
	"slices"

	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Options is what the user asked for beside the spec.
type Options struct {
	Types   map[string]providers.Type
	Project providers.Project
	Scope   Scope
	Allow   Allow
	Running map[spec.Address]bool           // overrides the wanted run state: `vm start` and `vm stop`
	Restart map[spec.Address]bool           // to be restarted even without an edit: `vm restart`
	Rekey   map[spec.Address]bool           // to be given other keys than its guest has, and nothing else: `vm rekey`
	Imports map[spec.Address]providers.ID   // what the user calls the objects that are to become theirs: `vmctl import`
	Unlock  map[spec.Address]bool           // disks of which a lock whose holder is gone is released, and nothing else: `disk unlock`
	Rest    []Deferred                      // what an earlier round deferred: nothing else is decided. nil: everything
	Destroy bool                            // every address in scope is wanted absent
	Held    bool                            // another process holds the run lock: what the journal began is under way
	Busy    map[spec.Address][]state.Holder // who is at work in a VM
}

// Scope narrows a plan. Targets pull in what they use, or for a destruction
// what uses them, unless they are Alone; what depends on an excluded address is
// excluded with it.
type Scope struct {
	Targets, Excludes []spec.Address
	Alone             bool // `vm stop`: the targets, and nothing else
}

// Allow holds the addresses whose replacement or destruction, or the interruption
// of those at work in them, was allowed by flag.
type Allow struct{ Replace, Destroy, Interrupt map[spec.Address]bool }

// ScopeError says that a target cannot be had without what is excluded.
type ScopeError struct{ Target, Needs spec.Address }

// Error returns what contradicts what, and the two ways out.
func (e *ScopeError) Error() string {
	return fmt.Sprintf("target %s needs %s, which is excluded: drop --exclude=%s, or drop the target", e.Target, e.Needs, shellword.Quote(e.Needs.String()))
}

// resolve returns the addresses that are in scope.
func (s Scope) resolve(c *spec.Config, st *state.Snapshot, all []spec.Address, destroy bool) (map[spec.Address]bool, error) {
	uses := usesOf(c, st, all)
	needs := uses
	if destroy {
		needs = inverse(uses)
	}
	in := map[spec.Address]bool{}
	if len(s.Targets) == 0 {
		for _, a := range all {
			in[a] = true
		}
	}
	for _, t := range s.Targets {
		closure := map[spec.Address]bool{t: true}
		if !s.Alone {
			closure = reach(t, needs)
		}
		for _, x := range s.Excludes {
			if closure[x] {
				return nil, &ScopeError{Target: t, Needs: x}
			}
		}
		maps.Copy(in, closure)
	}
	out := dependents(c, st, all, destroy)
	for _, x := range s.Excludes {
		for a := range reach(x, out) {
			delete(in, a)
		}
	}
	return in, nil
}

// scope returns the addresses that are in scope: those that the user names, or in a
// later round those that were deferred.
func (o Options) scope(c *spec.Config, st *state.Snapshot, all []spec.Address) (map[spec.Address]bool, error) {
	if o.Rest == nil {
		return o.Scope.resolve(c, st, all, o.Destroy)
	}
	in := map[spec.Address]bool{}
	for _, d := range o.Rest {
		in[d.Address] = true
	}
	return in, nil
}

// usesOf is what each address uses, by the spec if it is in there, else by its record.
func usesOf(c *spec.Config, st *state.Snapshot, all []spec.Address) map[spec.Address][]spec.Address {
	uses := map[spec.Address][]spec.Address{}
	for _, a := range all {
		if r, ok := c.Resource(a); ok {
			uses[a] = r.Uses
			continue
		}
		uses[a] = st.Records[a].Uses
	}
	return uses
}

// refersOf is what each address of the spec refers to.
func refersOf(c *spec.Config) map[spec.Address][]spec.Address {
	refers := map[spec.Address][]spec.Address{}
	for i := range c.Resources {
		refers[c.Resources[i].Address] = c.Resources[i].Uses
	}
	return refers
}

// dependents is what is left out with each address that is left out: what refers to it,
// or for a destruction what it uses.
func dependents(c *spec.Config, st *state.Snapshot, all []spec.Address, destroy bool) map[spec.Address][]spec.Address {
	if destroy {
		return usesOf(c, st, all)
	}
	return inverse(refersOf(c))
}

func sortedSet(set map[spec.Address]bool) []spec.Address {
	return slices.SortedFunc(maps.Keys(set), spec.Address.Compare)
}

func inverse(edges map[spec.Address][]spec.Address) map[spec.Address][]spec.Address {
	inv := map[spec.Address][]spec.Address{}
	for _, a := range slices.SortedFunc(maps.Keys(edges), spec.Address.Compare) {
		for _, b := range edges[a] {
			inv[b] = append(inv[b], a)
		}
	}
	return inv
}

func reach(from spec.Address, edges map[spec.Address][]spec.Address) map[spec.Address]bool {
	seen := map[spec.Address]bool{from: true}
	for todo := []spec.Address{from}; len(todo) > 0; {
		next := edges[todo[0]]
		todo = todo[1:]
		for _, a := range next {
			if !seen[a] {
				seen[a] = true
				todo = append(todo, a)
			}
		}
	}
	return seen
}
