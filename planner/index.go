package planner

import (
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// index finds the objects of one system. If several have the same ID or name, it finds the first.
type index struct {
	byID        map[idKey]*providers.Object
	byName      map[nameKey]*providers.Object
	marked      map[spec.Address][]*providers.Object // ours, by the address in their mark or the one to which a moved block leads it, of the same kind
	letGo       map[spec.Address]*providers.Object   // unmarked, by the address that let go of them
	unknownID   map[idKey]*providers.Problem
	unknownName map[nameKey]*providers.Problem
	veiled      []*providers.Object // VMs whose run state could not be read
}

type idKey struct {
	kind spec.Kind
	id   providers.ID
}

type nameKey struct {
	kind spec.Kind
	name string
}

func (w *World) indexOf(inv providers.Inventory, s *state.Snapshot, p providers.Project) *index {
	in := &index{
		byID: map[idKey]*providers.Object{}, byName: map[nameKey]*providers.Object{},
		marked: map[spec.Address][]*providers.Object{}, letGo: map[spec.Address]*providers.Object{},
		unknownID: map[idKey]*providers.Problem{}, unknownName: map[nameKey]*providers.Problem{},
	}
	for i := range inv.Objects {
		o := &inv.Objects[i]
		first(in.byID, idKey{o.Kind, o.ID}, o)
		first(in.byName, nameKey{o.Kind, o.Name}, o)
		if natures[o.Kind].takesDisks && runStateUnknown(o) != "" {
			in.veiled = append(in.veiled, o)
		}
		switch MarkingOf(o, p) {
		case Ours:
			if a := w.addressOf(o); a.Kind == o.Kind {
				in.marked[a] = append(in.marked[a], o)
			}
		case Unmarked:
			if a, forgotten := s.Forgotten[string(o.ID)]; forgotten && a.Kind == o.Kind {
				first(in.letGo, a, o)
			}
		case Absent, Foreign, Copied, Moved:
		}
	}
	for _, u := range inv.Unknown {
		why := providers.Refuse(u.Reason, u.Next)
		first(in.unknownID, idKey{u.Kind, u.ID}, why)
		if u.Name != "" {
			first(in.unknownName, nameKey{u.Kind, u.Name}, why)
		}
	}
	return in
}

// unknown returns why the object with an ID or a name could not be read; nil: it was read, or
// there is none. An empty ID or name matches nothing.
func (in *index) unknown(kind spec.Kind, id providers.ID, name string) *providers.Problem {
	if why := in.unknownID[idKey{kind, id}]; why != nil && id != "" {
		return why
	}
	return in.unknownName[nameKey{kind, name}]
}

func first[K comparable, V any](m map[K]V, key K, v V) {
	if _, ok := m[key]; !ok {
		m[key] = v
	}
}
