package cli

import "bytes"

// maskedLines replaces secrets in an output that comes in parts. A line is held back until it is whole, so that no secret is cut
// in two; where no secret is known, everything passes at once.
type maskedLines struct {
	secret bool
	mask   func(string) string
	held   []byte
}

// longestHeld limits what is held back of a line without an end (bytes).
const longestHeld = 1 << 20

// take adds a part, and returns what can be shown now; all of it at the end of the output.
func (m *maskedLines) take(part []byte, end bool) []byte {
	if !m.secret {
		return part
	}
	m.held = append(m.held, part...)
	n := bytes.LastIndexByte(m.held, '\n') + 1
	if end || len(m.held) > longestHeld {
		n = len(m.held)
	}
	shown := []byte(m.mask(string(m.held[:n])))
	m.held = append([]byte(nil), m.held[n:]...)
	return shown
}
