// Package view shows plans, progress, results and errors: for people as text
// that fits their terminal, for programs as JSON. It is the only code with a
// look; it runs nothing, decides nothing and knows no provider by name.
//
// Whatever comes from outside (names, labels, evidence, output of guests) is
// escaped before it is shown to people: no control character and no invalid
// UTF-8 reaches a terminal.
package view

import (
	"io"
	"strings"
)

// Screen is an output for people: a terminal, a pipe or a file.
type Screen struct {
	W       io.Writer
	Columns int  // 0: lines may have any length
	Color   bool // styles may be used
	ASCII   bool // no symbol beyond ASCII is shown (TERM=dumb); names keep their letters
}

// style is the number of a terminal's rendition.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// fixed stands for a space at which a line is never broken. Text escapes it,
// so foreign text never contains one.
const fixed = "\u00a0"

// span is a piece of safe text in one style.
type span struct {
	style style
	text  string
}

func in(s style, text string) span { return span{style: s, text: Text(text)} }

func txt(text string) span { return in(plain, text) }

// whole returns s as one word.
func whole(s span) span {
	s.text = strings.ReplaceAll(s.text, " ", fixed)
	return s
}

// padded returns s as one word that is at least width cells wide.
func padded(s span, width int) span {
	s = whole(s)
	if missing := width - Width(s.text); missing > 0 {
		s.text += strings.Repeat(fixed, missing)
	}
	return s
}

// page collects lines and writes them at once.
type page struct {
	screen Screen
	text   strings.Builder
	brief  int // cells after which a value is cut; 0: no value is cut
	keeps  bool
	kept   Review // if keeps is set
}

// narrow reports whether the screen has no room for columns side by side.
func (p *page) narrow() bool { return p.screen.Columns > 0 && p.screen.Columns < narrowColumns }

const narrowColumns = 60

func (p *page) blank() {
	p.keep(Paragraph{})
	p.text.WriteString("\n")
}

// symbol returns unicode, or ascii if the screen shows only ASCII.
func (p *page) symbol(unicode, ascii string) string {
	if p.screen.ASCII {
		return ascii
	}
	return unicode
}

// put writes spans as one paragraph: the first line after indent spaces, the
// others after hang spaces. A word is never broken.
func (p *page) put(indent, hang int, spans ...span) {
	p.keep(Paragraph{Indent: indent, Hang: hang, spans: spans})
	column := indent
	line := strings.Repeat(" ", indent)
	empty := true
	for _, w := range words(spans) {
		gap := 1
		if empty {
			gap = 0
		}
		if !empty && p.screen.Columns > 0 && column+gap+w.width > p.screen.Columns {
			p.endLine(line)
			line, column, gap = strings.Repeat(" ", hang), hang, 0
		}
		line += strings.Repeat(" ", gap) + w.render(p.screen.Color)
		column += gap + w.width
		empty = false
	}
	p.endLine(line)
}

func (p *page) endLine(line string) {
	p.text.WriteString(strings.TrimRight(strings.ReplaceAll(line, fixed, " "), " ") + "\n")
}

// heading writes a title after an empty line.
func (p *page) heading(title string) {
	p.blank()
	p.put(0, 0, in(bold, title))
}

// flush writes the page. It ignores errors: a screen that went away never stops the work.
func (p *page) flush() {
	if p.screen.W == nil {
		return
	}
	_, err := io.WriteString(p.screen.W, p.text.String())
	if err != nil {
		return
	}
	p.text.Reset()
}

// word is a run of spans without a place to break.
type word struct {
	spans []span
	width int
}

func (w word) render(color bool) string {
	var b strings.Builder
	for _, s := range w.spans {
		if !color || s.style == plain {
			b.WriteString(s.text)
			continue
		}
		b.WriteString("\x1b[" + string(s.style) + "m" + s.text + "\x1b[0m")
	}
	return b.String()
}

// words cuts spans at their spaces; spans that touch without one stay together.
func words(spans []span) []word {
	var all []word
	var current word
	end := func() {
		if len(current.spans) > 0 {
			all = append(all, current)
		}
		current = word{}
	}
	for _, s := range spans {
		for i, part := range strings.Split(s.text, " ") {
			if i > 0 {
				end()
			}
			if part == "" {
				continue
			}
			current.spans = append(current.spans, span{style: s.style, text: part})
			current.width += Width(part)
		}
	}
	end()
	return all
}
