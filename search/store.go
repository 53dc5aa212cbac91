package search

import (
	"context"
	"errors"

	"vmctl/spec"
	"vmctl/state"
)

// memory is a store that loses nothing but what a kill takes.
type memory struct {
	snapshot *state.Snapshot
	writes   int // that are left until it is killed; negative: it is not
}

func newMemory(id, project string) *memory {
	return &memory{writes: -1, snapshot: &state.Snapshot{
		Format: state.Format, ID: id, Project: project, Records: map[spec.Address]state.Record{}, Forgotten: map[string]spec.Address{},
	}}
}

// errKilled is how a journal ends whose process was killed.
var errKilled = errors.New("killed")

// journal is an open memory.
type journal struct {
	*memory
	dead bool
}

var _ state.Journal = (*journal)(nil)

func (m *memory) open() *journal { return &journal{memory: m} }

// Snapshot is the state with all that was appended.
func (j *journal) Snapshot() *state.Snapshot { return j.snapshot.With() }

// Append takes entries, unless the process was killed before.
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
