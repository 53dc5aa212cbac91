package providers

import (
	"context"
	"io"
)

// TerminalGuest is a guest that can give a command a terminal.
type TerminalGuest interface {
	Guest
	// RunOn runs a command as Guest.Run does, on a terminal inside: Stdin has the keys, and Stdout gets the whole
	// screen. Nothing is written to Stderr.
	RunOn(ctx context.Context, t Terminal, c Command) (Output, error)
}

// Terminal is the terminal of the user, in raw mode.
type Terminal interface {
	// Size returns the size in characters.
	Size() (columns, rows int, err error)
	// FollowSize calls resized with every new size, until ctx ends or resized fails.
	FollowSize(ctx context.Context, resized func(columns, rows int) error)
}

// Cleaner is a provider that removes objects which no address names, if the user names them.
type Cleaner interface {
	// CleanUp removes an object, as it was observed, without force. One that has changed since or that is in use stays,
	// and the error says so. Removing what is gone succeeds.
	CleanUp(ctx context.Context, o Object) (How, error)
}

// LogStreamer is a provider whose system keeps what its objects write to their outputs.
type LogStreamer interface {
	// StreamLog writes what an object has written, and with Follow also what it goes on to write, until it ends. The
	// error gives the reason if nothing can be read, or if the rest could not be: a connection that is lost is no end.
	StreamLog(ctx context.Context, o Object, q LogQuery) error
}

// LogQuery selects a part of a log.
type LogQuery struct {
	Tail           int // the number of last lines to begin with; below 0: all
	Follow         bool
	Stdout, Stderr io.Writer
}
