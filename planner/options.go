package planner

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Options holds the user's flags, and the other inputs of a plan beside the spec, the state and
// the world.
type Options struct {
	Types   providers.Types
	Project providers.Project
	// DigestKey compares sensitive values with the digests in records. Without it they are taken for unchanged.
	DigestKey state.DigestKey
	Scope     Scope
	Allow     Allow
	Running   map[spec.Address]bool           // overrides the wanted run state: `vm start` and `vm stop`
	States    map[spec.Address]string         // overrides the wanted state of containers: `container stop` and `container pause`
	Restart   map[spec.Address]bool           // what to restart even without an edit: `vm restart` and `container restart`
	Replace   map[spec.Address]bool           // objects to replace even without an edit: `plan --replace`
	Revert    map[spec.Address]bool           // resources that become again what was applied: `drift --revert`
	Rekey     map[spec.Address]bool           // VMs whose guests get new keys, and nothing else: `vm rekey`
	Imports   map[spec.Address]providers.ID   // the user's name for the object to import to each address: `vmctl import`
	Unlock    map[spec.Address]bool           // disks whose stale locks are released, and nothing else: `disk unlock`
	CleanUp   map[spec.Address]bool           // addresses of orphans, which are destroyed: `cleanup`
	Inward    bool                            // what runs is read inside, too, where neither the spec nor the state has anything: `leaks`
	Rest      []Deferred                      // the addresses that an earlier round deferred: only they are in scope. nil: all
	NoWait    bool                            // no step waits for a condition that nothing else in the plan needs
	Destroy   bool                            // every address in scope is wanted absent
	Heal      bool                            // only the records count: no edit of the spec is compared
	Held      bool                            // another process holds the run lock: what the journal began is under way
	Busy      map[spec.Address][]state.Holder // the holders at work in each VM
	// Visitors lists the holders at work in objects that neither the spec nor the state names. nil: nobody is at work there.
	Visitors func(context.Context, []spec.Address) (map[spec.Address][]state.Holder, error)
}

// Scope narrows a plan. A target brings the addresses that it uses, or for a destruction the
// addresses that use it, unless Alone is set. Excluding an address excludes its dependents too,
// or for a destruction the addresses that it uses.
type Scope struct {
	Targets, Excludes []spec.Address
	Alone             bool // `vm stop`: the targets, and nothing else
}

// Allow holds the addresses that the user allowed by flag to replace, to destroy, to take down while
// holders are at work in them, or to lose with the work that exists only there.
type Allow struct{ Replace, Destroy, Interrupt, Dirty map[spec.Address]bool }

// ScopeError reports that a target needs an excluded address.
type ScopeError struct{ Target, Needs spec.Address }

// Error names the target and the excluded address, and two ways out.
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

// scope returns the addresses that are in scope: those that Scope selects, or in a later round
// the deferred ones.
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

// usesOf returns the addresses that each address uses, by the spec if it is in there, else by its
// record.
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

// refersOf returns the addresses to which each address of the spec refers.
func refersOf(c *spec.Config) map[spec.Address][]spec.Address {
	refers := map[spec.Address][]spec.Address{}
	for i := range c.Resources {
		refers[c.Resources[i].Address] = c.Resources[i].Uses
	}
	return refers
}

// dependents returns the addresses that are left out together with each address: its dependents,
// or for a destruction the addresses that it uses.
func dependents(c *spec.Config, st *state.Snapshot, all []spec.Address, destroy bool) map[spec.Address][]spec.Address {
	if destroy {
		return usesOf(c, st, all)
	}
	return inverse(refersOf(c))
}

// asksFor reports whether a command asks for something to be done with one object, whatever its block says.
func (o Options) asksFor(a spec.Address) bool {
	_, running := o.Running[a]
	_, state := o.States[a]
	return running || state || o.Restart[a] || o.Replace[a] || o.Rekey[a]
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
