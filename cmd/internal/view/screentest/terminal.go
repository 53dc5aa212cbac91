// Package screentest simulates a small terminal: it turns the bytes written to it into the
// screen that a user would see.
package screentest

import (
	"fmt"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Terminal is a screen with the lines that have scrolled out of it. It knows carriage return,
// line feed, colors, cursor up, erase below, and wrapping on and off; it keeps everything
// else in Unknown. It is not safe for use by several goroutines.
type Terminal struct {
	// Unknown lists control characters and sequences that it does not know.
	Unknown []string
	// Cells returns the width of a character in cells; nil: as Unicode says.
	Cells func(rune) int

	columns, rows int
	lines         []line // the lines that have scrolled out, then the screen
	top           int    // the first line of the screen
	row, column   int    // of the cursor; row counts from the first line of all
	past          bool   // the cursor is beyond the last column: the next character wraps
	noWrap        bool
	style         string
	rest          []byte // of an incomplete character or sequence
}

// line is a row of the screen. A character that is two cells wide is followed by
// an empty cell.
type line struct {
	cells []cell
	wraps bool // the next line continues it
}

type cell struct {
	text  string
	style string
}

// New makes a terminal.
func New(columns, rows int) *Terminal {
	t := &Terminal{columns: columns, rows: rows}
	t.lines = make([]line, rows)
	return t
}

// Size returns columns and rows.
func (t *Terminal) Size() (columns, rows int) { return t.columns, t.rows }

// Write implements io.Writer. It never fails.
func (t *Terminal) Write(p []byte) (int, error) {
	text := append(t.rest, p...)
	t.rest = nil
	for len(text) > 0 {
		n := t.next(text)
		if n == 0 {
			t.rest = slices.Clone(text)
			break
		}
		text = text[n:]
	}
	return len(p), nil
}

// next executes the first character or sequence of text and returns its length, 0 if it is
// incomplete.
func (t *Terminal) next(text []byte) int {
	switch c := text[0]; {
	case c == 0x1b:
		return t.sequence(text)
	case c == '\r':
		t.column, t.past = 0, false
	case c == '\n': // the system's terminal driver adds a carriage return
		t.column = 0
		t.feed()
	case c < ' ' || c == 0x7f:
		t.Unknown = append(t.Unknown, fmt.Sprintf("%#x", c))
	default:
		return t.character(text)
	}
	return 1
}

func (t *Terminal) character(text []byte) int {
	if !utf8.FullRune(text) {
		return 0
	}
	r, n := utf8.DecodeRune(text)
	switch {
	case r == utf8.RuneError && n == 1 || unicode.In(r, unicode.C):
		t.Unknown = append(t.Unknown, fmt.Sprintf("%q", text[:n]))
	case unicode.In(r, unicode.Mn, unicode.Me):
		t.combine(r)
	default:
		t.put(r)
	}
	return n
}

// combine puts a mark on the character before the cursor.
func (t *Terminal) combine(r rune) {
	before := t.column
	if !t.past {
		before--
	}
	for before > 0 && t.at(t.row, before).text == "" { // the second half of a wide character
		before--
	}
	if before >= 0 {
		t.at(t.row, before).text += string(r)
	}
}

func (t *Terminal) put(r rune) {
	w := t.width(r)
	if t.noWrap {
		t.column = min(t.column, t.columns-w)
	} else if t.past || t.column+w > t.columns {
		t.lines[t.row].wraps = true
		t.column = 0
		t.feed()
	}
	*t.at(t.row, t.column) = cell{text: string(r), style: t.style}
	for i := 1; i < w; i++ {
		*t.at(t.row, t.column+i) = cell{style: t.style}
	}
	t.column += w
	if t.past = t.column >= t.columns; t.past {
		t.column = t.columns - 1
	}
}

func (t *Terminal) width(r rune) int {
	if t.Cells != nil {
		return t.Cells(r)
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	case width.Neutral, width.EastAsianAmbiguous, width.EastAsianNarrow, width.EastAsianHalfwidth:
		return 1
	default:
		return 1
	}
}

// at returns the cell at a place, a blank one if nothing was written there.
func (t *Terminal) at(row, column int) *cell {
	l := &t.lines[row]
	for len(l.cells) <= column {
		l.cells = append(l.cells, cell{text: " "})
	}
	return &l.cells[column]
}

func (t *Terminal) feed() {
	t.past = false
	t.row++
	if t.row == len(t.lines) {
		t.lines = append(t.lines, line{})
	}
	t.top = max(t.top, t.row-t.rows+1)
}

// sequence executes an escape sequence and returns its length, 0 if it is incomplete.
func (t *Terminal) sequence(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	if text[1] != '[' {
		t.Unknown = append(t.Unknown, fmt.Sprintf("%q", text[:2]))
		return 2
	}
	end := slices.IndexFunc(text[2:], func(b byte) bool { return b >= '@' && b <= '~' })
	if end < 0 {
		return 0
	}
	body := string(text[2 : end+3])
	n, err := strconv.Atoi(body[:len(body)-1])
	switch {
	case body == "J":
		t.eraseBelow()
	case body == "?7l":
		t.noWrap = true
	case body == "?7h":
		t.noWrap = false
	case body == "0m":
		t.style = ""
	case body[len(body)-1] == 'm' && err == nil:
		t.style = strconv.Itoa(n)
	case body[len(body)-1] == 'A' && err == nil && n > 0:
		t.row, t.past = max(t.top, t.row-n), false
	default:
		t.Unknown = append(t.Unknown, fmt.Sprintf("%q", text[:end+3]))
	}
	return end + 3
}

func (t *Terminal) eraseBelow() {
	l := &t.lines[t.row]
	l.cells, l.wraps = l.cells[:min(t.column, len(l.cells))], false
	for i := t.row + 1; i < len(t.lines); i++ {
		t.lines[i] = line{}
	}
}
