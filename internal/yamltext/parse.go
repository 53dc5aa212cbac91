package yamltext

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// ErrEmpty says that a text holds no document.
var ErrEmpty = errors.New("it is empty")

// Parse reads a YAML document. Its values are nil, bool, string, int64, uint64 beyond those, Number,
// []any and map[string]any. The errors are for the author of the document and name the line where
// there is one.
func Parse(text string) (map[string]any, error) {
	root, err := readDocument(text)
	if err != nil {
		return nil, err
	}
	if root.ShortTag() == nullTag {
		return nil, ErrEmpty
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: it is %s, not a mapping like \"cpus: 4\"", root.Line, describe(root))
	}
	p := parser{left: maxSize, open: map[*yaml.Node]bool{}}
	return p.mapping(root, 0)
}

// The tags that a document may use.
const (
	nullTag      = "!!null"
	boolTag      = "!!bool"
	stringTag    = "!!str"
	intTag       = "!!int"
	floatTag     = "!!float"
	timestampTag = "!!timestamp"
	mergeTag     = "!!merge"
	listTag      = "!!seq"
	mappingTag   = "!!map"
)

// readDocument returns the root of the only document of a text.
func readDocument(text string) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var first, second yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, ErrEmpty
	case err != nil:
		return nil, syntaxError(err)
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return first.Content[0], nil
	case err != nil:
		return nil, syntaxError(err)
	}
	return nil, fmt.Errorf("line %d: a second document begins; only one is allowed", second.Line)
}

func syntaxError(err error) error {
	return fmt.Errorf("it is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
}

// parser turns the nodes of one document into values.
type parser struct {
	left int                 // bytes that the document may still have
	open map[*yaml.Node]bool // the collections around the current node
}

func (p *parser) value(n *yaml.Node, depth int) (any, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		if err := p.spend(n); err != nil {
			return nil, err
		}
		return scalar(n)
	case yaml.SequenceNode:
		return p.list(n, depth)
	case yaml.MappingNode:
		return p.mapping(n, depth)
	case yaml.AliasNode:
		if p.open[n.Alias] {
			return nil, fmt.Errorf("line %d: *%s is inside of what it stands for", n.Line, n.Value)
		}
		return p.value(n.Alias, depth)
	case yaml.DocumentNode:
		panic("yamltext: a document inside of a document")
	default:
		panic("yamltext: unknown kind of node")
	}
}

// spend counts a node towards the size of the document.
func (p *parser) spend(n *yaml.Node) error {
	if p.left -= len(n.Value) + 1; p.left < 0 {
		return fmt.Errorf("it has more than %d MiB when its aliases are expanded", maxSize>>20)
	}
	return nil
}

// enter begins a collection. The returned function ends it.
func (p *parser) enter(n *yaml.Node, tag string, depth int) (leave func(), err error) {
	if depth >= maxDepth {
		return nil, fmt.Errorf("line %d: its lists and mappings nest more than %d deep", n.Line, maxDepth)
	}
	if n.ShortTag() != tag {
		return nil, fmt.Errorf("line %d: the tag %s is not supported", n.Line, n.ShortTag())
	}
	if err := p.spend(n); err != nil {
		return nil, err
	}
	p.open[n] = true
	return func() { delete(p.open, n) }, nil
}

func (p *parser) list(n *yaml.Node, depth int) ([]any, error) {
	leave, err := p.enter(n, listTag, depth)
	if err != nil {
		return nil, err
	}
	defer leave()
	all := make([]any, 0, len(n.Content))
	for _, element := range n.Content {
		v, err := p.value(element, depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func (p *parser) mapping(n *yaml.Node, depth int) (map[string]any, error) {
	leave, err := p.enter(n, mappingTag, depth)
	if err != nil {
		return nil, err
	}
	defer leave()
	all := make(map[string]any, len(n.Content)/2)
	lines := map[string]int{}
	var merge *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, name := n.Content[i], ""
		if merged := key.Kind == yaml.ScalarNode && key.ShortTag() == mergeTag; merged && merge == nil {
			merge = n.Content[i+1]
			continue
		} else if merged {
			return nil, fmt.Errorf("line %d: the mapping has a second merge key", key.Line)
		}
		if name, err = p.key(key); err != nil {
			return nil, err
		}
		if line, ok := lines[name]; ok {
			return nil, fmt.Errorf("line %d: the mapping has the key %s already, on line %d", key.Line, quote(name), line)
		}
		lines[name] = key.Line
		if all[name], err = p.value(n.Content[i+1], depth+1); err != nil {
			return nil, err
		}
	}
	if merge == nil {
		return all, nil
	}
	return all, p.merge(all, merge, depth)
}

// key returns the text of a key.
func (p *parser) key(n *yaml.Node) (string, error) {
	line := n.Line
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("line %d: a key is %s, not a string", line, describe(n))
	}
	if err := p.spend(n); err != nil {
		return "", err
	}
	v, err := scalar(n)
	if err != nil {
		return "", err
	}
	name, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("line %d: the key %s is %s, not a string: put it in quotes", line, n.Value, describe(n))
	}
	if m := keyProblem(name); m != "" {
		return "", fmt.Errorf("line %d: the key %s %s", line, quote(name), m)
	}
	return name, nil
}

// keyProblem returns the mistake in a key, "" if there is none. Longer keys, and those of several
// lines, need the form "? KEY", which not every library reads.
func keyProblem(name string) string {
	switch {
	case strings.ContainsAny(name, "\n\r\u0085\u2028\u2029"):
		return "has a line break"
	case len(name) > maxKey:
		return fmt.Sprintf("has more than %d bytes", maxKey)
	default:
		return ""
	}
}

// merge adds the keys that a merge key takes over. Keys of the mapping itself win, then those of
// earlier sources.
func (p *parser) merge(into map[string]any, from *yaml.Node, depth int) error {
	v, err := p.value(from, depth)
	if err != nil {
		return err
	}
	sources, ok := v.([]any)
	if !ok {
		sources = []any{v}
	}
	for _, source := range sources {
		mapping, ok := source.(map[string]any)
		if !ok {
			return fmt.Errorf("line %d: a merge key takes mappings, like \"<<: *defaults\"", from.Line)
		}
		for name, v := range mapping {
			if _, own := into[name]; !own {
				into[name] = v
			}
		}
	}
	return nil
}

// scalar returns the value of a scalar.
func scalar(n *yaml.Node) (any, error) {
	tag := n.ShortTag()
	tagged := n.Style&yaml.TaggedStyle != 0
	if tag == stringTag || !tagged && (tag == timestampTag || tag == mergeTag) {
		return n.Value, nil
	}
	if tagged {
		switch tag {
		case nullTag, boolTag, intTag, floatTag:
		default:
			return nil, fmt.Errorf("line %d: the tag %s is not supported", n.Line, tag)
		}
		if plain := resolve(n.Value); plain != tag && (plain != intTag || tag != floatTag) {
			return nil, fmt.Errorf("line %d: %s is no value of the tag %s", n.Line, quote(n.Value), tag)
		}
	}
	switch tag {
	case nullTag:
		return nil, nil
	case boolTag:
		return strings.EqualFold(n.Value, "true"), nil
	case intTag, floatTag:
		return number(n.Value), nil
	default:
		return nil, fmt.Errorf("line %d: the tag %s is not supported", n.Line, tag)
	}
}

// resolve returns the tag of a plain scalar of that text.
func resolve(text string) string {
	n := yaml.Node{Kind: yaml.ScalarNode, Value: text}
	return n.ShortTag()
}

// number returns the value of the text of a number.
func number(text string) any {
	if integer.MatchString(text) {
		digits := strings.ReplaceAll(text, "_", "")
		if n, err := strconv.ParseInt(digits, 0, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(strings.TrimPrefix(digits, "+"), 0, 64); err == nil {
			return n
		}
	}
	return Number(text)
}

// describe names the kind of a node with its article.
func describe(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return "a list"
	}
	if n.Kind == yaml.MappingNode {
		return "a mapping"
	}
	switch n.ShortTag() {
	case nullTag:
		return "null"
	case boolTag:
		return "a boolean"
	case intTag, floatTag:
		return "a number"
	default:
		return "a string"
	}
}

// quote quotes a text of the document, and cuts a long one.
func quote(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}
