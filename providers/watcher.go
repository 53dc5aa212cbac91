package providers

import "context"

// Watcher is a provider that can tell what changes in its system as it happens.
type Watcher interface {
	// Watch tells each object that is there, and then each change, in the system's order, until ctx ends or tell fails. A
	// lost connection is made again, and what differs after it is told.
	Watch(ctx context.Context, tell func(Sighting) error) error
}

// Sighting is a change that was noticed in a system that is watched.
type Sighting struct {
	Change Sight
	Object Object // of SightListed and SightLost: none
	Reason string // of SightUnknown and SightLost
}

// Sight says what was noticed.
type Sight string

// What is noticed in a system that is watched.
const (
	SightPresent Sight = "present" // it was there when the watch began
	SightAdded   Sight = "added"
	SightChanged Sight = "changed"
	SightRemoved Sight = "removed"
	SightUnknown Sight = "unknown" // it is there and cannot be read
	SightListed  Sight = "listed"  // all that is there has been told
	SightLost    Sight = "lost"    // the connection: what changes meanwhile is told later
)
