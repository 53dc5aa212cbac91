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
	writes   int // the writes left until it is killed; negative: it is not killed
}

func newMemory(id, project string) *memoryStore {
	return &memoryStore{writes: -1, snapshot: &state.Snapshot{
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

// Append adds entries. It fails if the process was killed before.
func (j *journal) Append(_ context.Context, entries ...state.Entry) error {
	if j.dead || j.writes == 0 {
		j.dead = true
		return errKilled
	}
	j.writes--
	j.snapshot = j.snapshot.With(entries...)
	return nil
}

// Close ends the run.
func (j *journal) Close() error {
	j.snapshot.Serial++
	j.writes = -1
	return nil
}
