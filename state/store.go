package state

import (
	"context"
	"time"
)

// Store keeps the state of one project: records, the journal of the running apply, and the run
// lock.
type Store interface {
	// Read returns the snapshot with the journal that continues it. It takes no lock and changes
	// nothing, and it may run beside a writer: it sees the state as it was at one moment. A store
	// without a state returns an empty snapshot.
	//
	// Read never takes a state that it cannot understand for an empty one: it fails with a
	// *CorruptError, a *NewerError or a *MismatchError, and leaves the documents unchanged.
	Read(ctx context.Context) (*Snapshot, error)
	// Open takes the run lock, waiting as long as o says, and returns a journal that continues the
	// snapshot. What an earlier run left in its journal becomes a new snapshot first. It fails as
	// Read does, and with a *LockedError if another process keeps the lock.
	Open(ctx context.Context, o Owner) (Journal, error)
	// Holder returns the holder of the run lock; nil: nobody holds it. It takes no lock and
	// disturbs nobody. The Holder is zero where its record cannot be read.
	Holder(ctx context.Context) (*Holder, error)
	// Diagnose returns the Repair that Repair would carry out. It takes no lock and changes nothing.
	Diagnose(ctx context.Context) (Repair, error)
	// Repair makes a damaged state readable: it takes the last whole snapshot and applies each
	// journal up to its damage. It first copies each document that is damaged. Only a torn last
	// line, on which nobody relied, is dropped without a copy. The result has a serial of its own.
	// A whole state is left as it is. A state of a newer vmctl or of another project is an error,
	// as it is to Read.
	Repair(ctx context.Context, o Owner) (Repair, error)
}

// Journal is an open state. Its owner holds the run lock. Its methods may be called from several
// goroutines.
type Journal interface {
	// Snapshot returns a copy of the state with every entry appended so far.
	Snapshot() *Snapshot
	// Append makes entries durable, in one write, before it returns. It sets Serial and Seq, and At
	// if that is zero. If it fails, none of the entries counts, neither in the store nor in the
	// Snapshot. If the process ends within it, the first of the entries may count.
	//
	// An ended context does not stop it: the results of steps are recorded also after the run was
	// cancelled.
	Append(ctx context.Context, e ...Entry) error
	// Close writes the snapshot, if entries were appended, and frees the lock. If it fails, the
	// journal in the store still holds all entries. A second Close does nothing.
	Close() error
}

// Owner describes the command that takes the run lock, and its wait for the lock.
type Owner struct {
	Command string        // shown to processes that wait: "vmctl apply"
	Wait    time.Duration // how long to wait for another holder; 0: not at all
	// Waiting is called once when the lock is held by another. nil is fine.
	Waiting func(Holder)
	// FreeSpace is called when there is no space for the lock, and reports whether it freed some.
	// nil: no space can be freed.
	FreeSpace func() (bool, error)
}

// Config says whose state a store keeps.
type Config struct {
	ID      string           // the lineage: a state of another one is a *MismatchError
	Project string           // for people
	Version string           // of vmctl, for whoever has to read the documents later
	Now     func() time.Time // dates of entries; required by Open
	// RepairWith is the command line that errors suggest for repairing the state.
	// "": vmctl state repair.
	RepairWith string

	knownTypes      types   // set by a test; nil: those of the spec
	readableFormats formats // set by a test; zero: the formats of this build
}

// NewStore returns a Store that keeps its documents in a Backend.
func NewStore(b Backend, c Config) Store { return documents{Config: c, backend: b} }
