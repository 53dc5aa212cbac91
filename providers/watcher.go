package providers

import "context"

// Watcher is a provider that can tell what changes in its system as it happens.
type Watcher interface {
	// Watch tells each object that is there, and then each change, in the system's order, until ctx ends or tell fails. A
	// lost connection is made again, and what differs after it is told.
	Watch(ctx context.Context, tell func(Notice) error) error
}

// Notice is a change that was noticed in a system that is watched.
type Notice struct {
	Change NoticeKind
	Object Object // of NoticedListed and NoticedLost: none
	Reason string // of NoticedUnknown and NoticedLost
}

// NoticeKind says what was noticed.
type NoticeKind string

// What is noticed in a system that is watched.
const (
	NoticedPresent NoticeKind = "present" // it was there when the watch began
	NoticedAdded   NoticeKind = "added"
	NoticedChanged NoticeKind = "changed"
	NoticedRemoved NoticeKind = "removed"
	NoticedUnknown NoticeKind = "unknown" // it is there and cannot be read
	NoticedListed  NoticeKind = "listed"  // all that is there has been told
	NoticedLost    NoticeKind = "lost"    // the connection: what changes meanwhile is told later
)
