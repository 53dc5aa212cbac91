package state

import (
	"context"
	"errors"
)

// Backend keeps the documents of one state, which are bytes with a name such as state.json, and
// lets one process at a time write them. What the documents say is not its business: NewStore
// makes a Store of any Backend, and package storetest has the tests that a Backend must pass.
type Backend interface {
	// Where names the place of all documents, for people: a folder or a URL.
	Where() string
	// Path names a document, for people.
	Path(name string) string
	// List returns the names of all documents, in any order. It may also return names of other
	// things that are kept there, and documents that are removed meanwhile.
	List(ctx context.Context) ([]string, error)
	// Get returns a document as it was at one moment. The error of a document that does not exist
	// is fs.ErrNotExist. A Get that begins after a write has returned sees that write.
	Get(ctx context.Context, name string) ([]byte, error)
	// Holder returns the holder of the lease; nil: nobody has it.
	Holder(ctx context.Context) (*Holder, error)
	// Lock takes the lease, and waits for it as long as o says. If another process keeps it, the
	// error is a *LockedError. The lease of a process that ended is free again.
	Lock(ctx context.Context, o Owner) (Lease, error)
}

// Lease is the right to write documents, which one process has at a time. A write is durable when
// it returns without an error. A process that has lost its lease changes nothing any more, even by
// a write that is delayed on its way: the error is a *LostLockError. After any other error the
// write did not happen, unless the error is ErrUncertain.
//
// A process that ends within a write leaves it done or not done; only of an Append it may leave the
// first part of the text.
type Lease interface {
	// Put makes a document, or replaces it as a whole.
	Put(name string, data []byte) error
	// Append adds text to a document. size is the size of the document in bytes; with the size 0,
	// Append makes the document, and fails if it exists.
	Append(name string, size int64, text []byte) error
	// Rename gives a document another name, and replaces the document that had it.
	Rename(from, to string) error
	// Remove removes a document. It is no error if the document does not exist.
	Remove(name string) error
	// Release gives the lease back.
	Release() error
}

// ErrUncertain reports that a write may have happened or not, and that nobody can tell any more.
var ErrUncertain = errors.New("it is unknown whether this was written")
