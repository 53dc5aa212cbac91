package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Review is a shown plan as a plan file keeps it: its paragraphs before they are broken into lines.
// A screen like the one that it was made for shows the same bytes again.
type Review []Paragraph

// Paragraph is one paragraph of a Review. The zero one is an empty line.
type Paragraph struct {
	Indent, Hang int // spaces before the first line, and before the others
	spans        []span
}

// paragraphJSON is a Paragraph as JSON. Each span has its style and its text.
type paragraphJSON struct {
	Indent int         `json:"i,omitempty"`
	Hang   int         `json:"h,omitempty"`
	Spans  [][2]string `json:"s,omitempty"`
}

// MarshalJSON returns the paragraph with its spans.
func (p Paragraph) MarshalJSON() ([]byte, error) {
	kept := paragraphJSON{Indent: p.Indent, Hang: p.Hang}
	for _, s := range p.spans {
		kept.Spans = append(kept.Spans, [2]string{string(s.style), s.text})
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("write a paragraph: %w", err)
	}
	return text, nil
}

// UnmarshalJSON reads what MarshalJSON wrote. It escapes what no plan would show.
func (p *Paragraph) UnmarshalJSON(text []byte) error {
	var kept paragraphJSON
	if err := json.Unmarshal(text, &kept); err != nil {
		return fmt.Errorf("read a paragraph: %w", err)
	}
	*p = Paragraph{Indent: min(max(kept.Indent, 0), 80), Hang: min(max(kept.Hang, 0), 80)}
	for _, s := range kept.Spans {
		words := strings.Split(s[1], fixed)
		for i := range words {
			words[i] = Text(words[i])
		}
		look := style(s[0])
		if !slices.Contains([]style{bold, dim, red, green, yellow, cyan}, look) {
			look = plain
		}
		p.spans = append(p.spans, span{style: look, text: strings.Join(words, fixed)})
	}
	return nil
}

// keep adds a paragraph to the review of the page.
func (p *page) keep(one Paragraph) {
	if p.keeps {
		p.kept = append(p.kept, one)
	}
}

// Reviewed shows a plan as it was shown when it was saved.
func Reviewed(s Screen, r Review) {
	w := &page{screen: s}
	for _, one := range r {
		w.put(one.Indent, one.Hang, one.spans...)
	}
	w.flush()
}
