package state

import (
	"cmp"
	"fmt"
)

// String names the holder for people: `vmctl apply (pid 42 on ada) since
// 2026-03-04 05:06:07 UTC`.
func (h Holder) String() string {
	if h == (Holder{}) {
		return "a process that has not said who it is"
	}
	return fmt.Sprintf("%s (pid %d on %s) since %s", h.Command, h.PID, h.Host, h.Since.UTC().Format("2006-01-02 15:04:05 MST"))
}

// Compare orders holders by when they came.
func (h Holder) Compare(other Holder) int {
	return cmp.Or(h.Since.Compare(other.Since), cmp.Compare(h.Host, other.Host), cmp.Compare(h.PID, other.PID))
}
