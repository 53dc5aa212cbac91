package state

import "time"

// Action remembers the last command that acted on the object of a record by itself, such as container stop.
type Action struct {
	Command string    `json:"command"` // "container stop"
	Began   time.Time `json:"began"`
	// Ended is when it succeeded or failed; zero: that was not recorded, because it goes on or was killed.
	Ended time.Time `json:"ended,omitzero"`
	// Failed is the reason why it did not succeed; "": it did, or its end was not recorded.
	Failed string `json:"failed,omitempty"`
}
