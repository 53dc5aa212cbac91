package planner

import (
	"fmt"
	"slices"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Sight is what the world shows of one address.
type Sight struct {
	System   *System
	Object   *providers.Object // nil: absent, or unknown
	Marking  Marking
	Recorded bool   // a record names this very object; for an absent one: there is a record
	Unknown  string // why it cannot be said what is there; "": it can
}

// Sight looks an address up. The object that the record names comes first, then
// the one whose mark names the address, unless it was moved to another, then one
// that the state let go of, then the one that bears its name.
func (w *World) Sight(a spec.Address, s *state.Snapshot, p providers.Project, name string) Sight {
	record, recorded := s.Records[a]
	system := w.systems[w.placed[a]]
	sight := Sight{System: system, Marking: Absent, Recorded: recorded}
	inv := system.Inventory
	for _, u := range inv.Unknown {
		if u.Kind == a.Kind && (recorded && u.ID == providers.ID(record.ID) || u.Name == name) {
			sight.Unknown = u.Reason
			return sight
		}
	}
	sight.Object = find(inv.Objects, func(o *providers.Object) bool {
		return o.Kind == a.Kind && recorded && o.ID == providers.ID(record.ID)
	})
	if sight.Object == nil {
		sight.Recorded = false
		sight.Object = find(inv.Objects, func(o *providers.Object) bool {
			return o.Kind == a.Kind && MarkingOf(o, p) == Ours && o.Owner.Address == a && movedTo(s, o) == spec.Address{}
		})
	}
	if sight.Object == nil {
		sight.Object = find(inv.Objects, func(o *providers.Object) bool {
			at, forgotten := s.Forgotten[string(o.ID)]
			return o.Kind == a.Kind && MarkingOf(o, p) == Unmarked && forgotten && at == a
		})
	}
	if sight.Object == nil {
		sight.Object = find(inv.Objects, func(o *providers.Object) bool { return o.Kind == a.Kind && o.Name == name })
	}
	if sight.Object == nil {
		sight.Recorded = recorded
		if why, partial := inv.Partial[a.Kind]; partial {
			sight.Unknown = why
		}
		return sight
	}
	sight.Marking = MarkingOf(sight.Object, p)
	if sight.Marking == Ours {
		sight.Marking = oursAt(a, s, sight.Object)
	}
	return sight
}

// oursAt says what the mark of an object that is this project's means to an
// address.
func oursAt(a spec.Address, s *state.Snapshot, o *providers.Object) Marking {
	switch to := movedTo(s, o); {
	case to == a, to != spec.Address{} && o.Owner.Address == a:
		return Moved
	case o.Owner.Address == a:
		return Ours
	default:
		return Foreign
	}
}

// movedTo is the address whose record took an object over from the one that its
// mark still names; zero: none did.
func movedTo(s *state.Snapshot, o *providers.Object) spec.Address {
	for a, r := range s.Records {
		if r.ID == string(o.ID) && a.Kind == o.Kind && a != o.Owner.Address && slices.Contains(r.Was, o.Owner.Address) {
			return a
		}
	}
	return spec.Address{}
}

// Object returns what the world shows of an address that is in the spec or the
// state, whoever owns it.
func (w *World) Object(a spec.Address, s *state.Snapshot, p providers.Project) (*providers.Object, bool) {
	if _, ok := w.placed[a]; !ok {
		return nil, false
	}
	name := ObjectName(p, a)
	if r, ok := s.Records[a]; ok {
		name = r.Name
	}
	o := w.Sight(a, s, p, name).Object
	return o, o != nil
}

func find(objects []providers.Object, is func(*providers.Object) bool) *providers.Object {
	for i := range objects {
		if is(&objects[i]) {
			return &objects[i]
		}
	}
	return nil
}

// describe names an object for people: `libvirt vm "quickstart.dev" (UUID)`.
func describe(system *System, o *providers.Object) string {
	return fmt.Sprintf("%s %s %q (%s)", system.Ref.Type, o.Kind, o.Name, o.ID)
}
