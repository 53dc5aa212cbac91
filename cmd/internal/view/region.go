package view

import (
	"bytes"
	"fmt"
	"strings"
)

// Control sequences of a terminal. Between two writes the cursor stands at the beginning of
// the region: wherever a terminal moves the lines when its size changes, everything below the
// cursor is the region and can be erased.
const (
	eraseBelow = "\r\x1b[J"
	wrapOff    = "\x1b[?7l" // a line that turns out too wide still takes one row
	wrapOn     = "\x1b[?7h"
	upLines    = "\x1b[%dA"
)

// Region is the bottom of a terminal, below the finished lines, where a Frame is redrawn in
// place. It writes nothing: its methods return the bytes, and the owner of the terminal
// writes all of them in that order. The zero Region draws no frame and returns text as it is.
type Region struct {
	// Size is called before each drawing; 0 is unknown. nil: there is no room.
	Size  func() (columns, rows int)
	Color bool

	frame Frame
	drawn bool
	open  bool // the last line has no end yet, so no frame is drawn
}

// Above returns the bytes that write text above the region.
func (r *Region) Above(text []byte) []byte { return r.Update(text, r.frame) }

// Update returns the bytes that write text above the region, and draw a new frame in it. The
// zero Frame erases the region.
func (r *Region) Update(text []byte, f Frame) []byte {
	r.frame = f
	var b bytes.Buffer
	if r.drawn {
		b.WriteString(eraseBelow)
		r.drawn = false
	}
	if len(text) > 0 {
		b.Write(text)
		r.open = text[len(text)-1] != '\n'
	}
	if r.Size != nil && !r.open {
		b.WriteString(r.draw())
	}
	return b.Bytes()
}

func (r *Region) draw() string {
	lines := r.frame.Lines(r)
	if len(lines) == 0 {
		return ""
	}
	r.drawn = true
	text := wrapOff + strings.Join(lines, "\r\n") + wrapOn + "\r"
	if up := len(lines) - 1; up > 0 {
		text += fmt.Sprintf(upLines, up)
	}
	return text
}
