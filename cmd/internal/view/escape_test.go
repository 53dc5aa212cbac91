package view_test

import (
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"vmctl/cmd/internal/view"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain":            "plain",
		"ümlaut 漢字 ✓":      "ümlaut 漢字 ✓",
		"a\x1b[31mred":     `a\x1b[31mred`,
		"a\nb\tc\rd":       `a\nb\tc\rd`,
		"\xff\xfe":         `\xff\xfe`,
		"left\u202eright":  `left\u202eright`,
		"zero\u200bwidth":  `zero\u200bwidth`,
		"hard\u00a0space":  `hard\u00a0space`,
		"del\x7f c1\u009b": `del\x7f c1\u009b`,
		"tag\U000e0041":    `tag\U000e0041`,
	} {
		if got := view.Text(in); got != want {
			t.Errorf("Text(%q) is %q, want %q", in, got, want)
		}
	}
	if got, want := view.Lines("a\n\tb\x1b"), "a\n\tb\\x1b"; got != want {
		t.Errorf("Lines gives %q, want %q", got, want)
	}
}

func TestTextIsAlwaysSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		got := view.Text(string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		for _, r := range got {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("%q holds control character %U", got, r)
			}
		}
	})
}
