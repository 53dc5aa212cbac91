package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// The Ops of Notes that mean more than their record. Settled ends every
// interruption of its Address; Forgotten says that an object stays as it is: it blocks
// its Address, if it names one, and no other object gets its ID; Moved gives the record of
// From, and all that was begun there, to Address.
const (
	Settled   = "settled"
	Forgotten = "forgotten"
	Moved     = "moved"
)

// empty returns the state before anything was applied.
func (d documents) empty() *Snapshot {
	return &Snapshot{
		Format: d.formats().newest, ID: d.ID, Project: d.Project,
		Records: map[spec.Address]Record{}, Forgotten: map[string]spec.Address{},
	}
}

// decode turns the documents into the snapshot with its journal applied, and returns how they were
// written.
func (d documents) decode(read content) (*Snapshot, encoding, error) {
	s := d.empty()
	in := d.present()
	if read.snapshot != nil {
		var err error
		if s, in, err = d.decodeSnapshot(read.snapshot); err != nil {
			return nil, in, err
		}
	}
	for _, j := range read.journals {
		switch {
		case read.snapshot == nil:
			return nil, in, d.corrupt(CorruptError{Path: d.backend.Path(j.name), Err: fmt.Errorf("it continues %s, which does not exist", d.backend.Path(snapshotName))})
		case j.serial > s.Serial:
			return nil, in, d.corrupt(CorruptError{Path: d.backend.Path(j.name), Err: fmt.Errorf("it continues snapshot %d, but %s is snapshot %d", j.serial, d.backend.Path(snapshotName), s.Serial)})
		case j.serial < s.Serial:
			continue // the snapshot has it
		}
		entries, note, err := d.decodeJournal(j, in)
		if err != nil {
			return nil, in, err
		}
		for _, e := range entries {
			s.apply(e)
		}
		if note != "" {
			s.Notes = append(s.Notes, note)
		}
	}
	return s, in, nil
}

// With returns a copy of s with entries applied, as a journal would apply them. It panics at an
// entry that a journal would refuse.
func (s *Snapshot) With(entries ...Entry) *Snapshot {
	c := s.clone()
	for _, e := range entries {
		if err := e.check(); err != nil {
			panic("state: " + err.Error())
		}
		c.apply(e)
	}
	return c
}

// apply applies one entry.
func (s *Snapshot) apply(e Entry) {
	switch e.Kind {
	case Begin:
		s.end(e.isOf)
		s.Interrupted = append(s.Interrupted, e)
	case Done:
		s.done(e)
	case Failed:
		if !e.Deletes() {
			s.end(e.isOf)
		}
	case Note:
		s.note(e)
	default:
		panic("state: an entry that was not checked: " + string(e.Kind))
	}
	if e.Put != nil {
		s.Records[e.Address] = e.Put.clone()
		if s.Forgotten[e.Put.ID] != (spec.Address{}) { // it blocks its address no longer; an ID that is spent stays so
			delete(s.Forgotten, e.Put.ID)
		}
	}
	if e.Drop {
		delete(s.Records, e.Address)
	}
}

// done ends the step of e. A destruction stays interrupted from its first finished step until its
// record is dropped, however its other steps end: until then the object may be half destroyed.
func (s *Snapshot) done(e Entry) {
	for i := range s.Interrupted {
		if b := &s.Interrupted[i]; b.isOf(e) && b.Destroys() && !e.Drop {
			b.Leaves = nil
			return
		}
	}
	s.end(func(b Entry) bool { return b.isOf(e) || e.Drop && b.isDestruction(e.Address) })
}

// isOf reports whether two entries are of one step.
func (e Entry) isOf(other Entry) bool { return e.Run == other.Run && e.Step == other.Step }

// isDestruction reports whether e began a step of the destruction of an address.
func (e Entry) isDestruction(a spec.Address) bool { return e.Destroys() && e.Address == a }

// note applies the effect of a Note's Op.
func (s *Snapshot) note(e Entry) {
	switch e.Op {
	case Settled:
		s.end(func(b Entry) bool { return b.Address == e.Address })
	case Forgotten:
		s.Forgotten[e.ID] = e.Address
	case Moved:
		s.move(e.From, e.Address)
	}
}

// end removes interrupted entries for which ended returns true.
func (s *Snapshot) end(ended func(Entry) bool) {
	s.Interrupted = slices.DeleteFunc(s.Interrupted, ended)
}

// check returns the reason why an entry is invalid.
func (e Entry) check() error {
	switch e.Kind {
	case Begin, Done, Failed, Note:
	default:
		return fmt.Errorf("an entry of the unknown kind %q", e.Kind)
	}
	if e.Put != nil && e.Drop {
		return fmt.Errorf("an entry that both puts and drops the record of %s", e.Address)
	}
	if e.Address != (spec.Address{}) {
		if back, err := spec.ParseAddress(e.Address.String()); err != nil || back != e.Address {
			return fmt.Errorf("an entry for %q, which is no address", e.Address)
		}
	} else if e.Put != nil || e.Drop {
		return errors.New("an entry that changes a record and names no address")
	}
	switch {
	case e.Op == Moved && e.Kind == Note && (e.From == spec.Address{} || e.Address == spec.Address{} || e.From == e.Address):
		return errors.New("an entry that moves a record and does not name two addresses")
	case e.Op == Forgotten && e.Kind == Note && e.ID == "":
		return errors.New("an entry that lets go of an object and does not name it")
	}
	return nil
}

// Values returns the applied values of each address, computed attributes included. It leaves out
// addresses without values.
func (s *Snapshot) Values() map[spec.Address]cty.Value {
	values := make(map[spec.Address]cty.Value, len(s.Records))
	for address, r := range s.Records {
		if r.Values != cty.NilVal {
			values[address] = r.Values
		}
	}
	return values
}

// clone returns a deep copy.
func (s *Snapshot) clone() *Snapshot {
	c := *s
	c.Records = make(map[spec.Address]Record, len(s.Records))
	for address, r := range s.Records {
		c.Records[address] = r.clone()
	}
	c.Forgotten = maps.Clone(s.Forgotten)
	c.Interrupted = make([]Entry, 0, len(s.Interrupted))
	for _, e := range s.Interrupted {
		c.Interrupted = append(c.Interrupted, e.clone())
	}
	c.Notes = slices.Clone(s.Notes)
	return &c
}

func (r Record) clone() Record {
	r.Digests, r.Provisions = maps.Clone(r.Digests), maps.Clone(r.Provisions)
	r.Uses, r.Was, r.Conditions = slices.Clone(r.Uses), slices.Clone(r.Was), slices.Clone(r.Conditions)
	return r
}

func (e Entry) clone() Entry {
	e.Leaves = slices.Clone(e.Leaves)
	e.Evidence = slices.Clone(e.Evidence)
	if e.Put != nil {
		put := e.Put.clone()
		e.Put = &put
	}
	return e
}

// corruptSnapshot is the error for a snapshot that cannot be decoded.
func (d documents) corruptSnapshot(cause error) *CorruptError {
	return d.corrupt(CorruptError{Path: d.backend.Path(snapshotName), Err: cause})
}

// move gives the record of from to another address, with its interrupted steps and its place in
// other records' Uses.
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

// withAddress returns the record with to in place of from wherever it refers to from.
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
		if a, ok := spec.AttrAt(r.Kind, dotted(path)); ok && slices.Contains(a.Refers, from.Kind) {
			return cty.StringVal(to.String()), nil
		}
		return v, nil
	})
	if err == nil { // else it says what it said
		r.Values = values
	}
	return r
}
