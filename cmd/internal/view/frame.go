package view

import (
	"fmt"
	"strings"
	"time"
)

// Frame holds the steps that run at one moment. The zero Frame: no step runs.
type Frame struct {
	steps []runningStep // in the order in which they are shown
	// address is the width of the widest address of the run so far. The columns stay in place
	// while the running steps change.
	address int
}

// runningStep is one step that runs.
type runningStep struct {
	address  string // escaped
	doing    string
	says     string // its last text; "": none yet
	elapsed  time.Duration
	deadline time.Duration // 0: none
}

// leastColumns is the least width at which a line is still of use.
const leastColumns = 20

// Lines returns the frame as a region shows it: an empty line, then a line for each step,
// each shorter than the screen is wide. They take at most half of the screen, so that
// finished lines stay in sight; the last line counts the steps that have no room. A screen
// that is too small gets no lines.
func (f Frame) Lines(r *Region) []string {
	columns, rows := r.Size()
	room := rows/2 - 1 // one is empty
	if len(f.steps) == 0 || columns < leastColumns || room < 1 {
		return nil
	}
	shown := f.steps
	if len(shown) > room {
		shown = shown[:room-1]
	}
	lines := []string{""}
	widths := f.widths(shown, columns)
	for _, s := range shown {
		lines = append(lines, s.line(widths, r.Color))
	}
	if hidden := len(f.steps) - len(shown); hidden > 0 {
		text := "and " + plural(hidden, "step") + " more"
		if len(shown) == 0 {
			text = plural(hidden, "step") + " under way"
		}
		lines = append(lines, "  "+word{spans: []span{in(dim, cut(text, columns-3))}}.render(r.Color))
	}
	return lines
}

// frameWidths holds the width of each part of a line, in cells.
type frameWidths struct{ line, address, time int }

// widths returns the widths at which the parts of the lines stand below each other, if there
// is room.
func (f Frame) widths(shown []runningStep, columns int) frameWidths {
	w := frameWidths{line: columns - 1, address: min(f.address, max(columns*2/5, leastColumns/2))}
	for _, s := range shown {
		w.time = max(w.time, Width(s.time()))
	}
	return w
}

func (s runningStep) line(w frameWidths, color bool) string {
	style := plain
	if s.deadline > 0 && s.elapsed > s.deadline/5*4 {
		style = yellow
	}
	address, time := CutMiddle(s.address, w.address), s.time()
	if w.line < narrowColumns {
		w.address, w.time = Width(address), Width(time)
	}
	text := s.doing
	if s.says != "" {
		text += ": " + s.says
	}
	parts := []string{
		word{spans: []span{{bold, address}}}.render(color) + fill(w.address-Width(address)),
		fill(w.time-Width(time)) + word{spans: []span{{style, time}}}.render(color),
	}
	gaps := 3 * len("  ")
	if text = cut(text, w.line-gaps-w.address-w.time); text != "" {
		parts = append(parts, text)
	}
	return "  " + strings.Join(parts, "  ")
}

func fill(n int) string { return strings.Repeat(" ", max(n, 0)) }

// time returns the elapsed time and the deadline, in whole seconds: `12s of 10m`.
func (s runningStep) time() string {
	text := s.elapsed.Truncate(time.Second).String()
	if s.deadline > 0 {
		text = fmt.Sprintf("%s of %s", text, Limit(s.deadline))
	}
	return text
}
