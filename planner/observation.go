package planner

import (
	"fmt"
	"maps"
	"slices"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Observation holds the object that the world shows for one address, and its marking.
type Observation struct {
	System   *System
	Object   *providers.Object // nil: absent, or unknown
	Marking  Marking
	Recorded bool               // a record names this very object; for an absent one: there is a record
	Unknown  *providers.Problem // why it is unknown which object is there; nil: it is known
}

// Observations looks addresses up in a World as a state knows them.
type Observations struct {
	world   *World
	state   *state.Snapshot
	project providers.Project
	indexes map[string]*index         // by system
	taken   map[string][]spec.Address // by the ID in their records: addresses, sorted
}

// Observations returns the lookup of addresses in w for a project with a state. Neither w nor s may
// change while it is used.
func (w *World) Observations(s *state.Snapshot, p providers.Project) *Observations {
	v := &Observations{world: w, state: s, project: p, indexes: map[string]*index{}, taken: map[string][]spec.Address{}}
	v.read(slices.Collect(maps.Values(w.systems)))
	for a, r := range s.Records {
		v.taken[r.ID] = append(v.taken[r.ID], a)
	}
	for _, all := range v.taken {
		slices.SortFunc(all, spec.Address.Compare)
	}
	return v
}

// read takes in what systems showed.
func (v *Observations) read(systems []*System) {
	for _, system := range systems {
		v.indexes[system.Key] = v.world.indexOf(system.Inventory, v.state, v.project)
	}
}

// At looks an address up, by the name that its object has or would get. The object
// that the record names comes first, then the one whose mark names the address,
// unless it was moved to another, then one that the state let go of, then the one
// that bears its name.
func (v *Observations) At(a spec.Address, name string) Observation {
	record, recorded := v.state.Records[a]
	key := v.world.placed[a]
	seen := Observation{System: v.world.systems[key], Marking: Absent, Recorded: recorded}
	if seen.Unknown = seen.System.unread(); seen.Unknown != nil {
		return seen
	}
	in := v.indexes[key]
	id := providers.ID(record.ID)
	if seen.Unknown = in.unknown(a.Kind, id, name); seen.Unknown != nil {
		return seen
	}
	if recorded {
		seen.Object = in.byID[idKey{a.Kind, id}]
	}
	if v.isUnowned(a, seen.Object) {
		seen.Object = nil
	}
	if seen.Object == nil {
		seen.Recorded = false
		seen.Object = v.markedFor(in, a)
	}
	if seen.Object == nil {
		seen.Object = in.letGo[a]
	}
	if seen.Object == nil {
		seen.Object = in.byName[nameKey{a.Kind, name}]
	}
	if seen.Object == nil {
		seen.Recorded, seen.Unknown = recorded, seen.System.Inventory.Partial[a.Kind]
		return seen
	}
	seen.Marking = v.marking(a, seen.Object)
	return seen
}

// isUnowned reports whether the record of an address names an unmarked object that is not
// vmctl's all the same: its ID was only reserved, and vmctl makes nothing without a mark,
// or an earlier run took the mark off to let go of it.
func (v *Observations) isUnowned(a spec.Address, o *providers.Object) bool {
	if MarkingOf(o, v.project) != Unmarked {
		return false
	}
	return v.state.Records[a].Reserved || slices.ContainsFunc(v.state.Interrupted, func(e state.Entry) bool {
		return e.Address == a && e.How == state.LettingGo && e.ID == string(o.ID)
	})
}

// markedFor returns the first object whose mark names an address, and that was not moved to
// another.
func (v *Observations) markedFor(in *index, a spec.Address) *providers.Object {
	for _, o := range in.marked[a] {
		if to := v.movedTo(o); to == (spec.Address{}) || v.world.led[o] == a {
			return o
		}
	}
	return nil
}

// marking returns the marking of an object, seen from an address.
func (v *Observations) marking(a spec.Address, o *providers.Object) Marking {
	m := MarkingOf(o, v.project)
	if m != Ours {
		return m
	}
	switch to := v.movedTo(o); {
	case v.world.led[o] == a:
		return Ours
	case to == a, to != spec.Address{} && o.Owner.Address == a:
		return Moved
	case o.Owner.Address == a:
		return Ours
	default:
		return Foreign
	}
}

// movedTo returns the address to which an object was moved from the one that its mark still
// names, by a record or by a moved block. Zero: it was not moved.
func (v *Observations) movedTo(o *providers.Object) spec.Address {
	if to, led := v.world.led[o]; led {
		return to
	}
	for _, a := range v.taken[string(o.ID)] {
		if a.Kind == o.Kind && a != o.Owner.Address && slices.Contains(v.state.Records[a].Was, o.Owner.Address) {
			return a
		}
	}
	return spec.Address{}
}

// describe names an object for people: `libvirt vm "quickstart.dev" (UUID)`.
func describe(system *System, o *providers.Object) string {
	return fmt.Sprintf("%s %s %q (%s)", system.Ref.Type, o.Kind, o.Name, o.ID)
}
