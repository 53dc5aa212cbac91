package search

import (
	"context"
	"errors"

	"vmctl/spec"
	"vmctl/state"
)

// memoryStore is a store in memory. It loses only the entries that a kill prevents.
type memoryStore struct {
	snapshot *state.Snapshot
	entries  int // the entries left until it is killed, perhaps in the midst of a write; negative: it is not killed
}

func newMemory(id, project string) *memoryStore {
	return &memoryStore{entries: -1, snapshot: &state.Snapshot{
		Format: state.Format, ID: id, Project: project, Records: map[spec.Address]state.Record{}, Forgotten: map[string]spec.Address{},
	}}
}

// errKilled reports that the process of a journal was killed.
var errKilled = errors.New("killed")

// journal is an open memoryStore.
type journal struct {
	*memoryStore
	dead bool
}

var _ state.Journal = (*journal)(nil)

func (m *memoryStore) open() *journal { return &journal{memoryStore: m} }

// Snapshot returns the state with all entries that were appended.
func (j *journal) Snapshot() *state.Snapshot { return j.snapshot.With() }

// Append adds entries. It fails if the process was killed before, or before the last of them.
func (j *journal) Append(_ context.Context, entries ...state.Entry) error {
	if j.dead {
		return errKilled
	}
	kept := entries
	if j.entries >= 0 {
		kept = entries[:min(j.entries, len(entries))]
		j.entries -= len(kept)
	}
	j.snapshot = j.snapshot.With(kept...)
	if j.dead = len(kept) < len(entries); j.dead {
		return errKilled
	}
	return nil
}

// Close ends the run.
func (j *journal) Close() error {
	j.snapshot.Serial++
	j.entries = -1
	return nil
}
