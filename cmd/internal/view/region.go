package view

import (
	"bytes"
	"fmt"
	"strings"
)

// What a terminal is told. Between two writes the cursor stands where the region
// begins: wherever a terminal moves the lines when its size changes, all that is
// below the cursor is the region and can be erased.
const (
	eraseBelow = "\r\x1b[J"
	wrapOff    = "\x1b[?7l" // a line that is wider than it was thought takes one row all the same
	wrapOn     = "\x1b[?7h"
	upLines    = "\x1b[%dA"
)

// Region is the bottom of a terminal, below the finished lines, where a Frame is
// redrawn in place. It says what to write and writes nothing: whoever owns the
// terminal writes all of it, in that order. The zero Region has no room for
// anything and lets text through as it is.
type Region struct {
	// Size is asked before each drawing; 0 is unknown. nil: there is no room.
	Size  func() (columns, rows int)
	Color bool

	frame Frame
	drawn bool
	open  bool // the last line has no end: it belongs to whoever wrote it
}

// Above is text for the lines above the region.
func (r *Region) Above(text []byte) []byte { return r.Update(text, r.frame) }

// Update is text for the lines above the region, and a new frame in it. The zero
// Frame erases the region.
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
