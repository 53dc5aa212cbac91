package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON writes one document, indented.
func JSON(w io.Writer, document any) error { return encode(w, document, "  ") }

// Line writes one document on a line of its own.
func Line(w io.Writer, document any) error { return encode(w, document, "") }

func encode(w io.Writer, document any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(document); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	if _, err := w.Write(printable(b.Bytes())); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// printable escapes, in the strings of JSON, the characters that a terminal would obey or
// hide: programs read the same, and people can look at it safely. Outside of strings JSON has
// no such characters.
func printable(text []byte) []byte {
	if !bytes.ContainsFunc(text, hidden) {
		return text
	}
	all := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case !hidden(r):
			all = append(all, text[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			all = fmt.Appendf(all, `\u%04x\u%04x`, high, low)
		default:
			all = fmt.Appendf(all, `\u%04x`, r)
		}
		text = text[n:]
	}
	return all
}

func hidden(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
