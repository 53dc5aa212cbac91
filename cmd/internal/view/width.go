package view

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Width returns the number of terminal cells that safe text takes. Where terminals differ it
// returns the most that a usual one takes.
func Width(text string) int {
	n := 0
	for _, r := range text {
		n += cells(r)
	}
	return n
}

// emojiStyle asks for the wide form of the symbol before it.
const emojiStyle = '\ufe0f'

func cells(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case r == emojiStyle:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
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

const ellipsis = "…"

// cut shortens text to at most limit cells: text that is too long loses its end.
func cut(text string, limit int) string {
	if Width(text) <= limit {
		return text
	}
	if limit < 1 {
		return ""
	}
	return strings.TrimRight(head(text, limit-1), " ") + ellipsis
}

// CutMiddle shortens safe text to at most limit cells: text that is too long loses its
// middle. Names that share their beginning differ at their end.
func CutMiddle(text string, limit int) string {
	if Width(text) <= limit {
		return text
	}
	if limit < 1 {
		return ""
	}
	first := head(text, (limit-1)/2)
	return first + ellipsis + tail(text, limit-1-Width(first))
}

// head returns the longest beginning of text that takes at most limit cells.
func head(text string, limit int) string {
	n := 0
	for i, r := range text {
		if n += cells(r); n > limit {
			return text[:i]
		}
	}
	return text
}

// tail returns the longest end of text that takes at most limit cells.
func tail(text string, limit int) string {
	for i, r := range text {
		if cells(r) > 0 && Width(text[i:]) <= limit {
			return text[i:]
		}
	}
	return ""
}
