package condition

import (
	"cmp"
	"slices"
)

// Set holds the reported conditions of one resource, by type. Its methods return other sets, and leave
// the set as it is.
type Set []Condition

// Declared is a condition that a kind of resource has, and its producer.
type Declared struct {
	Type     string
	Producer string // "": nobody
}

func (s Set) find(kind string) (int, bool) {
	return slices.BinarySearchFunc(s, kind, func(c Condition, kind string) int { return cmp.Compare(c.Type, kind) })
}

// Of returns the condition of a type; false: it was never reported.
func (s Set) Of(kind string) (Condition, bool) {
	i, found := s.find(kind)
	if !found {
		return Condition{}, false
	}
	return s[i], true
}

// Satisfied reports whether the condition of a type is satisfied for a generation.
func (s Set) Satisfied(kind string, target uint64) bool {
	c, reported := s.Of(kind)
	return reported && c.Satisfied(target)
}

// Await returns the declared condition as a wait for a generation finds it, and what that means for
// the wait. A wait for a condition that nobody produces is over at once.
func (s Set) Await(d Declared, target uint64) (Condition, Outcome) {
	c := s.Complete([]Declared{d}, target)[0]
	return c, c.At(target)
}

// With returns the set after a report.
func (s Set) With(r Report, at Stamp) Set {
	all := slices.Clone(s)
	i, found := all.find(r.Type)
	if !found {
		return slices.Insert(all, i, Condition{}.stamped(r, at))
	}
	all[i] = all[i].stamped(r, at)
	return all
}

// Confirm returns the set after a change that concerned none of its conditions: those that were
// satisfied for the generation before the change are satisfied for the one after it.
func (s Set) Confirm(before, after uint64) Set {
	all := slices.Clone(s)
	for i := range all {
		if all[i].Satisfied(before) {
			all[i].Generation = max(all[i].Generation, after)
		}
	}
	return all
}

// Complete returns the declared conditions of a resource, in their order: as they were reported, else
// as unknown. A condition that nobody produces is not applicable, for any generation.
func (s Set) Complete(declared []Declared, target uint64) []Condition {
	all := make([]Condition, 0, len(declared))
	for _, d := range declared {
		c, reported := s.Of(d.Type)
		switch {
		case d.Producer == "":
			c = Unproduced(d.Type, target)
		case !reported:
			c = Condition{Report: Report{Type: d.Type, Status: Unknown, Reason: NeverReported, Message: "it was not reported yet"}}
			c.Producer = d.Producer
		}
		all = append(all, c)
	}
	return all
}

// Unproduced returns a condition that nobody produces.
func Unproduced(kind string, target uint64) Condition {
	return Condition{
		Report:     Report{Type: kind, Status: NotApplicable, Reason: NoProducer, Message: "nothing reports it here"},
		Generation: target,
	}
}
