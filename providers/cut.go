package providers

import (
	"fmt"
	"strings"
)

// longest is the length of the longest message that Cut leaves whole; ending is the length of
// the end that it keeps of a longer one (bytes).
const (
	longest = 4096
	ending  = 512
)

// Cut shortens a system's message that is too long to read: it keeps the beginning and the
// end, with a marker between them.
func Cut(text string) string {
	if len(text) <= longest {
		return text
	}
	marker := fmt.Sprintf(" … [%d bytes in all] … ", len(text))
	begin, end := text[:longest-ending], text[len(text)-ending:]
	return strings.ToValidUTF8(begin, "") + marker + strings.ToValidUTF8(end, "")
}

// LongError is an error whose message is cut.
type LongError struct{ Err error }

// Error returns the message, cut.
func (e *LongError) Error() string { return Cut(e.Err.Error()) }

// Unwrap returns the error with its whole message.
func (e *LongError) Unwrap() error { return e.Err }

// Cut shortens the reasons in the inventory.
func (inv *Inventory) Cut() {
	for kind, why := range inv.Partial {
		inv.Partial[kind] = Cut(why)
	}
	for i := range inv.Unknown {
		inv.Unknown[i].Reason = Cut(inv.Unknown[i].Reason)
	}
	for i := range inv.Objects {
		for path, why := range inv.Objects[i].Unreadable {
			inv.Objects[i].Unreadable[path] = Cut(why)
		}
	}
}

// Cut shortens the message of a problem and its observations.
func (p *Problem) Cut() {
	if p.Err != nil && len(p.Err.Error()) > longest {
		p.Err = &LongError{Err: p.Err}
	}
	for i, seen := range p.Seen {
		p.Seen[i] = Cut(seen)
	}
}
