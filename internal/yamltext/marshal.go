package yamltext

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Marshal returns the canonical text of a document of the values that Parse returns; int is as good
// as int64. Values of other types, and strings that are not UTF-8, are an error.
func Marshal(doc map[string]any) (string, error) {
	root, err := node(doc, 0)
	if err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	var b strings.Builder
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	return b.String(), nil
}

// node returns the node of a value, in its canonical style.
func node(v any, depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("lists and mappings nest more than %d deep", maxDepth)
	}
	plain := func(tag, text string) (*yaml.Node, error) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}, nil
	}
	switch v := v.(type) {
	case nil:
		return plain(nullTag, "null")
	case bool:
		return plain(boolTag, strconv.FormatBool(v))
	case int:
		return plain(intTag, strconv.Itoa(v))
	case int64:
		return plain(intTag, strconv.FormatInt(v, 10))
	case uint64:
		return plain(intTag, strconv.FormatUint(v, 10))
	case Number:
		tag := resolve(string(v))
		if tag != intTag && tag != floatTag {
			return nil, fmt.Errorf("%s is not a number", quote(string(v)))
		}
		return plain(tag, string(v))
	case string:
		return text(v)
	case []any:
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: listTag}
		for _, element := range v {
			n, err := node(element, depth+1)
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, n)
		}
		return list, nil
	case map[string]any:
		mapping := &yaml.Node{Kind: yaml.MappingNode, Tag: mappingTag}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			key, err := text(name)
			if err != nil {
				return nil, err
			}
			if m := keyProblem(name); m != "" {
				return nil, fmt.Errorf("the key %s %s", quote(name), m)
			}
			n, err := node(v[name], depth+1)
			if err != nil {
				return nil, err
			}
			mapping.Content = append(mapping.Content, key, n)
		}
		return mapping, nil
	default:
		return nil, fmt.Errorf("a value has the type %T", v)
	}
}

// text returns the node of a string: as a block if it has several simple lines, in quotes if a
// reader could take it for something else, and plain otherwise.
func text(s string) (*yaml.Node, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("the string %q is not UTF-8", s)
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: stringTag, Value: s}
	switch {
	case isBlock(s):
		n.Style = yaml.LiteralStyle
	case s == "" || resolve(s) != stringTag || numeric.MatchString(s) || word.MatchString(s) || strings.ContainsFunc(s, isUnusual):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n, nil
}

// isBlock reports whether a string can be written as a block of lines without an indentation hint
// and without escapes.
func isBlock(s string) bool {
	return strings.Contains(s, "\n") && !strings.ContainsAny(s[:1], " \t\n") &&
		!strings.ContainsFunc(strings.ReplaceAll(strings.ReplaceAll(s, "\n", ""), "\t", ""), isUnusual)
}

// isUnusual reports whether a character is written as an escape: a control character, a line or
// paragraph separator, or one that cannot be seen.
func isUnusual(r rune) bool {
	return r != ' ' && !unicode.IsGraphic(r) || r == '\u2028' || r == '\u2029'
}
