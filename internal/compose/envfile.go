package compose

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// readEnv reads a file of variables: NAME=value lines, whose values may be in quotes and of several lines. A value that is
// not in single quotes may have variables, which lookup knows, or lines above. A name alone takes its value from lookup.
func readEnv(text string, lookup func(string) (string, bool)) (map[string]string, error) {
	all := map[string]string{}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("it is not UTF-8")
	}
	vars := &variables{missing: map[string]bool{}, left: maxExpanded, lookup: func(name string) (string, bool) {
		if value, ok := lookup(name); ok {
			return value, true
		}
		value, ok := all[name]
		return value, ok
	}}
	whole := strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	rest := whole
	for {
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
		if rest == "" {
			return all, nil
		}
		line := 1 + strings.Count(whole[:len(whole)-len(rest)], "\n")
		first, below, _ := strings.Cut(rest, "\n")
		if strings.HasPrefix(first, "#") {
			rest = below
			continue
		}
		at := strings.IndexAny(first, "=:")
		name := first
		if at >= 0 {
			name = first[:at]
		}
		name = strings.TrimSpace(name)
		if after, ok := strings.CutPrefix(name, "export"); ok && strings.TrimSpace(after) != after {
			name = strings.TrimSpace(after)
		}
		if name == "" || strings.ContainsFunc(name, isNoName) {
			return nil, fmt.Errorf("line %d: %s is no name of a variable", line, quote(name))
		}
		if at < 0 {
			if value, ok := lookup(name); ok {
				all[name] = value
			}
			rest = below
			continue
		}
		value, after, err := envValue(strings.TrimLeft(rest[at+1:], " \t\v\f"), vars)
		if err != nil {
			return nil, fmt.Errorf("line %d: the value of %s: %w", line, name, err)
		}
		all[name], rest = value, after
	}
}

func isNoName(c rune) bool {
	return !strings.ContainsRune("_.-[]", c) && !unicode.IsLetter(c) && !unicode.IsNumber(c)
}

// envValue returns the value with which a text begins, and what follows it.
func envValue(text string, vars *variables) (value, rest string, err error) {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		value, rest, _ = strings.Cut(text, "\n")
		value, _, _ = strings.Cut(value, " #")
		value, err = vars.expand(strings.TrimRightFunc(value, unicode.IsSpace))
		return value, rest, err
	}
	mark := text[0]
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == mark && mark == '\'':
			return b.String(), text[i+1:], nil
		case c == mark:
			value, err = vars.expand(b.String())
			return value, text[i+1:], err
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteString(escaped(text[i], mark))
		default:
			b.WriteByte(c)
		}
	}
	return "", "", fmt.Errorf("its quotation is not closed")
}

// escaped returns the meaning of a character after a backslash, in a quotation of that mark.
func escaped(c, mark byte) string {
	switch {
	case c == mark:
		return string(c)
	case mark == '\'':
		return "\\" + string(c)
	case c == '$':
		return "$$" // a dollar sign, once variables are replaced
	case c == '\\':
		return "\\"
	case strings.IndexByte("abfnrtv", c) >= 0:
		r, _, _, err := strconv.UnquoteChar("\\"+string(c), '"')
		if err == nil {
			return string(r)
		}
	}
	return "\\" + string(c)
}

// readRawEnv reads a file of variables in the raw format: each line as it is.
func readRawEnv(text string) (map[string]string, error) {
	all := map[string]string{}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("it is not UTF-8")
	}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("line %d: %s has no value", i+1, quote(line))
		}
		all[name] = value
	}
	return all, nil
}
