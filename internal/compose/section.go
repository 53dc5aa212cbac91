package compose

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"vmctl/internal/shellword"
	"vmctl/internal/yamltext"
)

// section reads one mapping. What nobody takes out of it is left out with a reason.
type section struct {
	r      *reader
	path   string // in the file
	within string // its place in its service, network or volume: "deploy."
	in     map[string]any
	out    *[]LeftOut
	taken  map[string]bool
}

func (r *reader) section(path string, in map[string]any, out *[]LeftOut) *section {
	return &section{r: r, path: path, in: in, out: out, taken: map[string]bool{}}
}

// nested returns the section of a setting that is a mapping.
func (s *section) nested(key string, in map[string]any) *section {
	n := s.r.section(s.at(key), in, s.out)
	n.within = s.within + key + "."
	return n
}

// at returns the path of a setting of the section.
func (s *section) at(key string) string {
	if s.path == "" {
		return key
	}
	return s.path + "." + key
}

// take returns a setting. null is none.
func (s *section) take(key string) (any, bool) {
	s.taken[key] = true
	v := s.in[key]
	return v, v != nil
}

// takeText returns a setting that is a text, "" without one.
func (s *section) takeText(key string) string {
	v, ok := s.take(key)
	if !ok {
		return ""
	}
	text, _ := s.r.text(s.at(key), v)
	return text
}

// takeBool returns a setting that is true or false, false without one.
func (s *section) takeBool(key string) bool {
	v, ok := s.take(key)
	if !ok {
		return false
	}
	return s.r.truth(s.at(key), v)
}

// leave notes that a setting was left out.
func (s *section) leave(setting string, v any, reason string) {
	*s.out = append(*s.out, LeftOut{Setting: s.within + setting, Text: yamlOf(setting, v), Reason: reason})
}

// rest leaves out all that nobody took.
func (s *section) rest(reason func(setting string) string) {
	for _, key := range slices.Sorted(maps.Keys(s.in)) {
		if !s.taken[key] {
			s.leave(key, s.in[key], reason(key))
		}
	}
}

// yamlOf returns a setting as YAML.
func yamlOf(setting string, v any) string {
	key := setting[strings.LastIndexByte(setting, '.')+1:]
	text, err := yamltext.Marshal(map[string]any{key: v})
	if err != nil { // only a key of its own can be too long for YAML
		return fmt.Sprintf("%q: %q", key, fmt.Sprint(v))
	}
	return strings.TrimSuffix(text, "\n")
}

// mapping returns a value that is a mapping; null is an empty one.
func (r *reader) mapping(path string, v any) map[string]any {
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		return v
	default:
		r.fail(path, "is %s, not a mapping", describe(v))
		return nil
	}
}

// named yields the entries of a mapping of mappings, by name.
func (r *reader) named(path string, v any) iter.Seq2[string, map[string]any] {
	all, ok := v.(map[string]any)
	if !ok && v != nil {
		r.fail(path, "is %s, not a mapping", describe(v))
	}
	return func(yield func(string, map[string]any) bool) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !isName(name) {
				r.fail(path, "has the name %s; a name has letters, digits, `.`, `_` and `-`", quote(name))
				continue
			}
			if !yield(name, r.mapping(path+"."+name, all[name])) {
				return
			}
		}
	}
}

// isName reports whether compose accepts a text as the name of a service, a network or a volume.
func isName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._-", c)
	})
}

// list returns a value that is a list.
func (r *reader) list(path string, v any) []any {
	all, ok := v.([]any)
	if !ok {
		r.fail(path, "is %s, not a list", describe(v))
	}
	return all
}

// text returns the text of a scalar.
func (r *reader) text(path string, v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	case yamltext.Number:
		return string(v), true
	default:
		r.fail(path, "is %s, not a text", describe(v))
		return "", false
	}
}

// because returns a reason for all settings.
func because(reason string) func(string) string { return func(string) string { return reason } }

// truth returns a boolean, or the text of one.
func (r *reader) truth(path string, v any) bool {
	text, ok := r.text(path, v)
	switch strings.ToLower(text) {
	case "true", "t", "1", "yes", "y", "on":
		return true
	case "false", "f", "0", "no", "n", "off":
		return false
	}
	if ok {
		r.fail(path, "is %s, not true or false", quote(text))
	}
	return false
}

// whole returns a whole number, or the text of one.
func (r *reader) whole(path string, v any) int64 {
	text, ok := r.text(path, v)
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if ok && err != nil {
		r.fail(path, "is %s, not a whole number", quote(text))
	}
	return n
}

// texts returns a list of scalars as texts.
func (r *reader) texts(path string, v any) []string {
	all := r.list(path, v)
	texts := make([]string, 0, len(all))
	for i, element := range all {
		if text, ok := r.text(fmt.Sprintf("%s[%d]", path, i), element); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// words returns a command: a list, or a line that a shell would split.
func (r *reader) words(path string, v any) []string {
	line, ok := v.(string)
	if !ok {
		return r.texts(path, v)
	}
	words, err := shellword.Split(line)
	if err != nil {
		r.fail(path, "is %s: %v", quote(line), err)
	}
	if words == nil {
		words = []string{}
	}
	return words
}

// pairs returns a mapping of texts, or a list of NAME=value. A name without a value has nil.
func (r *reader) pairs(path string, v any) map[string]*string {
	all := map[string]*string{}
	if _, isList := v.([]any); isList {
		for _, entry := range r.texts(path, v) {
			name, value, ok := strings.Cut(entry, "=")
			if all[name] = nil; ok {
				all[name] = &value
			}
		}
		return all
	}
	given := r.mapping(path, v)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		if all[name] = nil; value != nil {
			if text, ok := r.text(path+"."+name, value); ok {
				all[name] = &text
			}
		}
	}
	return all
}

// labels returns the labels of a section.
func (s *section) labels() map[string]string {
	v, ok := s.take("labels")
	if !ok {
		return nil
	}
	all := map[string]string{}
	for name, value := range s.r.pairs(s.at("labels"), v) {
		if all[name] = ""; value != nil {
			all[name] = *value
		}
	}
	return all
}

// describe names the kind of a value with its article.
func describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	case bool:
		return "a boolean"
	case string:
		return "a text"
	default:
		return "a number"
	}
}

// quote quotes a text of the file, and cuts a long one.
func quote(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}
