package state

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// move gives a record, what was begun with it, and the place of what others use
// to another address.
func (s *Snapshot) move(from, to spec.Address) {
	if r, ok := s.Records[from]; ok {
		r = r.clone()
		r.Was = append(slices.DeleteFunc(r.Was, func(a spec.Address) bool { return a == to || a == from }), from)
		delete(s.Records, from)
		s.Records[to] = r
	}
	for a, r := range s.Records {
		if !slices.Contains(r.Uses, from) && r.Inside != from {
			continue
		}
		s.Records[a] = r.withAddress(from, to)
	}
	for i := range s.Interrupted {
		if s.Interrupted[i].Address == from {
			s.Interrupted[i].Address = to
		}
	}
}

// withAddress is a record in which to stands for from, wherever it is referred to.
func (r Record) withAddress(from, to spec.Address) Record {
	r = r.clone()
	for i, a := range r.Uses {
		if a == from {
			r.Uses[i] = to
		}
	}
	slices.SortFunc(r.Uses, spec.Address.Compare)
	r.Uses = slices.Compact(r.Uses)
	if r.Inside == from {
		r.Inside = to
	}
	values, err := cty.Transform(r.Values, func(path cty.Path, v cty.Value) (cty.Value, error) {
		if v.Type() != cty.String || !v.IsKnown() || v.IsNull() || v.AsString() != from.String() {
			return v, nil
		}
		if a, ok := spec.AttrAt(r.Kind, dotted(path)); ok && a.Refers == from.Kind {
			return cty.StringVal(to.String()), nil
		}
		return v, nil
	})
	if err == nil { // else it says what it said
		r.Values = values
	}
	return r
}
