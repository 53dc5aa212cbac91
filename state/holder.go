package state

import (
	"cmp"
	"fmt"
	"time"
)

// String names the holder for people: `vmctl apply (pid 42 on ada) since
// 2026-03-04T05:06:07Z`.
func (h Holder) String() string {
	if h == (Holder{}) {
		return "a process that has not said who it is"
	}
	return fmt.Sprintf("%s (pid %d on %s) since %s", h.Command, h.PID, h.Host, h.Since.UTC().Format(time.RFC3339))
}

// Compare orders holders by when they came.
func (h Holder) Compare(other Holder) int {
	return cmp.Or(h.Since.Compare(other.Since), cmp.Compare(h.Host, other.Host), cmp.Compare(h.PID, other.PID))
}
