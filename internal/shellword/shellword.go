// Package shellword quotes words so that a POSIX shell reads them back unchanged, whatever bytes
// they hold, and splits command lines into words. It is the only place that quotes: for the shell
// of a guest, to which an SSH server hands a command as one line, and for commands that a user
// copies from the screen.
package shellword

import (
	"errors"
	"slices"
	"strings"
)

// ErrOpen says that a quotation is not closed.
var ErrOpen = errors.New("a quotation in it is not closed")

// Split takes a line apart into words at its blanks, as a shell does: quotes and
// backslashes keep what they enclose together. Nothing is expanded.
func Split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun := false
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			if quote == '"' && !strings.ContainsRune(`"\$`+"`", rune(line[i])) {
				word.WriteByte(c)
			}
			word.WriteByte(line[i])
			begun = true
		case quote == 0 && (c == '\'' || c == '"'):
			quote, begun = c, true
		case quote == 0 && strings.ContainsRune(" \t\n", rune(c)):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if quote != 0 {
		return nil, ErrOpen
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// Join writes words as one line that a shell takes apart into the same words, and
// that it reads as one simple command: the first word is no assignment, no keyword
// and, after sh -c, no option.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	if len(words) > 0 && (slices.Contains(keywords, words[0]) || strings.HasPrefix(words[0], "-") || strings.HasPrefix(words[0], "+")) {
		quoted[0] = always(words[0])
	}
	return strings.Join(quoted, " ")
}

// Quote writes one word. What every shell reads as it stands is left as it is.
func Quote(word string) string {
	if isPlain(word) {
		return word
	}
	return always(word)
}

func always(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	marks   = "-./:,@+%=" // read as they stand, but for some at the beginning
)

func isPlain(word string) bool {
	if strings.Trim(word, letters+marks) != "" || word == "" {
		return false
	}
	if strings.ContainsRune("%=", rune(word[0])) { // a job; a path, to zsh
		return false
	}
	// NAME=value is an assignment, --flag=value is not.
	name, _, assigns := strings.Cut(word, "=")
	return !assigns || strings.Trim(name, letters+"+") != ""
}
