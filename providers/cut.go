package providers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"vmctl/spec"
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

// LongError is an error whose message is cut, or that was observed with messages that are.
type LongError struct {
	Err  error
	Seen []string // the observations of the failure that were cut, whole
}

// Error returns the message, cut.
func (e *LongError) Error() string { return Cut(e.Err.Error()) }

// Unwrap returns the error with its whole message.
func (e *LongError) Unwrap() error { return e.Err }

// Cut shortens the reasons in the inventory. It returns those that it shortened as they were.
func (inv *Inventory) Cut() (whole []string) {
	cut := func(text string) string {
		short := Cut(text)
		if short != text {
			whole = append(whole, text)
		}
		return short
	}
	shorten := func(why *Problem) *Problem {
		short := cut(why.Error())
		if short == why.Error() {
			return why
		}
		shortened := *why
		shortened.Err = errors.New(short)
		return &shortened
	}
	for _, problems := range []map[spec.Kind]*Problem{inv.Partial, inv.Missing} {
		for kind, why := range problems {
			problems[kind] = shorten(why)
		}
	}
	if inv.Blind != nil {
		inv.Blind = shorten(inv.Blind)
	}
	for i := range inv.Unknown {
		inv.Unknown[i].Reason = cut(inv.Unknown[i].Reason)
	}
	for i := range inv.Objects {
		for path, why := range inv.Objects[i].Unreadable {
			inv.Objects[i].Unreadable[path] = cut(why)
		}
	}
	slices.Sort(whole)
	return whole
}

// Cut shortens the message of a problem and its observations. Its cause then is a *LongError.
func (p *Problem) Cut() {
	var whole []string
	for i, seen := range p.Seen {
		if p.Seen[i] = Cut(seen); p.Seen[i] != seen {
			whole = append(whole, seen)
		}
	}
	if p.Err == nil && len(whole) > 0 {
		p.Err = errors.New(p.Code)
	}
	if p.Err != nil && (len(p.Err.Error()) > longest || len(whole) > 0) {
		p.Err = &LongError{Err: p.Err, Seen: whole}
	}
}
