package providers

import "context"

// ConsoleReader is a provider that keeps what its VMs write to their consoles.
type ConsoleReader interface {
	// Console reads what a VM has written, as its system keeps it, running or not:
	// from a place on, at most so many bytes. A place below zero is that far before
	// the end. What is shorter than the place was begun anew, and is read from its
	// start. An error says why nothing can be read.
	Console(ctx context.Context, o Object, from int64, most int) (Console, error)
}

// Console is a part of what a VM has written to its console.
type Console struct {
	Text  []byte // as the guest wrote it
	Start int64  // the place of the first byte
	More  bool   // the VM may write more: something of it runs
}

// Next is the place after the part.
func (c Console) Next() int64 { return c.Start + int64(len(c.Text)) }

// PartOf is where the part of something of a size begins, and how long it is, by the
// rules of Console.
func PartOf(size, from int64, most int) (start, length int64) {
	switch {
	case from < 0:
		from = max(0, size+from)
	case from > size:
		from = 0
	}
	return from, min(size-from, int64(most))
}
