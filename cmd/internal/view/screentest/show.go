package screentest

import "strings"

// String returns all lines, with those that have scrolled out, without blank lines at the
// end.
func (t *Terminal) String() string { return text(t.lines, cell.plain) }

// Text returns the lines of the screen, without blank lines at the end.
func (t *Terminal) Text() string { return text(t.screen(), cell.plain) }

// Styled returns the screen with its colors: <31>red</>.
func (t *Terminal) Styled() string { return text(t.screen(), nil) }

func (t *Terminal) screen() []line { return t.lines[t.top:] }

func (c cell) plain() string { return c.text }

// text joins lines. show returns the text of a cell; nil: the cells are shown with their
// styles.
func text(lines []line, show func(cell) string) string {
	var b strings.Builder
	blank := 0
	for _, l := range lines {
		shown := strings.TrimRight(l.text(show), " ")
		if shown == "" {
			blank++
			continue
		}
		b.WriteString(strings.Repeat("\n", blank) + shown + "\n")
		blank = 0
	}
	return b.String()
}

func (l line) text(show func(cell) string) string {
	var b strings.Builder
	style := ""
	for _, c := range l.cells {
		if show != nil {
			b.WriteString(show(c))
			continue
		}
		if c.style != style {
			if style != "" {
				b.WriteString("</>")
			}
			if c.style != "" {
				b.WriteString("<" + c.style + ">")
			}
			style = c.style
		}
		b.WriteString(c.text)
	}
	if style != "" {
		b.WriteString("</>")
	}
	return b.String()
}
