package compose

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// variables replaces variables in texts, as compose does.
type variables struct {
	lookup  func(name string) (string, bool)
	missing map[string]bool // names without a value that were replaced by nothing
	left    int             // bytes that all texts together may still have
}

// newVariables returns the variables of the environment, and those of the .env file that the environment lacks.
func newVariables(in Inputs) (*variables, error) {
	environ := func(name string) (string, bool) {
		value, ok := in.Environ[name]
		return value, ok
	}
	file, err := readEnv(in.DotEnv, environ)
	if err != nil {
		return nil, fmt.Errorf("the file .env beside it cannot be read: %w", err)
	}
	return &variables{missing: map[string]bool{}, left: maxExpanded, lookup: func(name string) (string, bool) {
		if value, ok := environ(name); ok {
			return value, true
		}
		value, ok := file[name]
		return value, ok
	}}, nil
}

// unset lists the variables that had no value and no default.
func (v *variables) unset() []string { return slices.Sorted(maps.Keys(v.missing)) }

// expand replaces the variables of a text: $X, ${X}, ${X:-default}, ${X:+other}, ${X:?message}, and those without the
// colon, which take an empty value for one. $$ is a dollar sign.
func (v *variables) expand(text string) (string, error) {
	expanded, err := v.expandIn(text, 0)
	if err != nil {
		return "", err
	}
	if v.left -= len(expanded); v.left < 0 {
		return "", fmt.Errorf("the file has more than %d MiB when its variables are replaced", maxExpanded>>20)
	}
	return expanded, nil
}

func (v *variables) expandIn(text string, depth int) (string, error) {
	if depth > maxNested {
		return "", fmt.Errorf("variables nest more than %d deep", maxNested)
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		n := nameLength(after)
		switch {
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			text = after[1:]
		case strings.HasPrefix(after, "{"):
			end := closing(after)
			if end < 0 {
				return "", fmt.Errorf("%s is not closed; $$ is a dollar sign", quote("$"+after))
			}
			value, err := v.braced(after[1:end], depth)
			if err != nil {
				return "", err
			}
			b.WriteString(value)
			text = after[end+1:]
		case n > 0:
			value, err := v.value(after[:n])
			if err != nil {
				return "", err
			}
			b.WriteString(value)
			text = after[n:]
		default: // compose leaves it as it is
			b.WriteByte('$')
			text = after
		}
		if b.Len() > maxExpanded {
			return "", fmt.Errorf("a text has more than %d MiB when its variables are replaced", maxExpanded>>20)
		}
	}
}

// braced returns the value of a variable in braces, of the text between them.
func (v *variables) braced(inner string, depth int) (string, error) {
	n := nameLength(inner)
	name, rest := inner[:n], inner[n:]
	if name == "" {
		return "", fmt.Errorf("%s names no variable; $$ is a dollar sign", quote("${"+inner+"}"))
	}
	if rest == "" {
		return v.value(name)
	}
	value, set := v.lookup(name)
	if strings.HasPrefix(rest, ":") {
		set, rest = set && value != "", rest[1:]
	}
	if rest == "" || !strings.ContainsRune("-+?", rune(rest[0])) {
		return "", fmt.Errorf("%s is none of the forms ${X}, ${X:-default}, ${X:+other} and ${X:?message}", quote("${"+inner+"}"))
	}
	// compose reads the other text even where the variable has a value: a mistake in it counts.
	beside := &variables{lookup: v.lookup, missing: map[string]bool{}}
	other, err := beside.expandIn(rest[1:], depth+1)
	if err != nil {
		return "", err
	}
	switch operator := rest[0]; {
	case operator == '+' && !set:
		return "", nil
	case operator == '+', operator == '-' && !set:
		maps.Copy(v.missing, beside.missing)
		return other, nil
	case operator == '?' && !set:
		return "", errors.New(strings.TrimSuffix(fmt.Sprintf("it requires the variable %s, which is not set: %s", name, other), ": "))
	default:
		return v.value(name)
	}
}

func (v *variables) value(name string) (string, error) {
	value, ok := v.lookup(name)
	if !ok {
		v.missing[name] = true
	}
	if !utf8.ValidString(value) {
		return "", fmt.Errorf("the variable %s is not UTF-8", name)
	}
	return value, nil
}

// nameLength returns the length of the variable's name with which a text begins.
func nameLength(text string) int {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', i > 0 && c >= '0' && c <= '9':
		default:
			return i
		}
	}
	return len(text)
}

// closing returns the place of the brace that closes the first one of a text, -1 if there is none. As compose does, it
// counts all braces, skips the character after each one that opens, and where they do not match takes the last of the line.
func closing(text string) int {
	open := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '}':
			if open--; open == 0 {
				return i
			}
		case '{':
			open++
			i++
		}
	}
	line, _, _ := strings.Cut(text, "\n")
	return strings.LastIndexByte(line, '}')
}
