// Package xmltree reads XML documents into trees, several times as fast as encoding/xml does:
// descriptions of hundreds of domains are read at once.
//
// It reads what libvirt writes: elements, attributes, namespaces, text, CDATA, comments, and
// the predefined and numeric entities. A document type is an error.
package xmltree

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Element is an element of a document. Its methods may be called on nil, which has nothing.
type Element struct {
	Name string // without its prefix
	Text string // of the element itself, without that of its children, and perhaps without the space between these

	prefix string
	attrs  []attr
	parent *Element
	first  *Element // child
	last   *Element // child
	next   *Element // sibling
}

type attr struct{ prefix, name, value string }

// Attr returns the value of an attribute without a prefix; "": there is none.
func (e *Element) Attr(name string) string {
	if e == nil {
		return ""
	}
	for _, a := range e.attrs {
		if a.prefix == "" && a.name == name {
			return a.value
		}
	}
	return ""
}

// Space returns the URI of the element's namespace; "": it is in none.
func (e *Element) Space() string {
	if e == nil {
		return ""
	}
	for up := e; up != nil; up = up.parent {
		for _, a := range up.attrs {
			if e.prefix == "" && a.prefix == "" && a.name == "xmlns" || e.prefix != "" && a.prefix == "xmlns" && a.name == e.prefix {
				return a.value
			}
		}
	}
	return ""
}

// Child returns the first child at a path of names; nil: there is none.
func (e *Element) Child(path ...string) *Element {
	for _, name := range path {
		if e == nil {
			return nil
		}
		for e = e.first; e != nil && e.Name != name; {
			e = e.next
		}
	}
	return e
}

// All returns the children of a name, in any namespace; of "": all children.
func (e *Element) All(name string) []*Element {
	if e == nil {
		return nil
	}
	var all []*Element
	for c := e.first; c != nil; c = c.next {
		if name == "" || c.Name == name {
			all = append(all, c)
		}
	}
	return all
}

// String returns the text of the element; "" for nil.
func (e *Element) String() string {
	if e == nil {
		return ""
	}
	return e.Text
}

// Parse reads a document, and returns its root.
func Parse(text string) (*Element, error) {
	r := &reader{text: text}
	if !utf8.ValidString(text) {
		return nil, errors.New("XML: it is no UTF-8")
	}
	root, err := r.document()
	if err != nil {
		return nil, fmt.Errorf("XML, byte %d: %w", r.at, err)
	}
	return root, nil
}

// reader reads a document from its beginning.
type reader struct {
	text string
	at   int      // byte
	open *Element // the innermost element that is not closed
	root *Element

	// Elements and attributes that were allocated together. Elements have parts of attrs.
	unused []Element
	attrs  []attr
}

// together is the number of elements, and that of attributes, that are allocated at once.
const together = 64

// fresh returns an element that is not used yet.
func (r *reader) fresh() *Element {
	if len(r.unused) == 0 {
		r.unused = make([]Element, together)
	}
	e := &r.unused[0]
	r.unused = r.unused[1:]
	return e
}

func (r *reader) document() (*Element, error) {
	for r.at < len(r.text) {
		tag := strings.IndexByte(r.text[r.at:], '<')
		if tag < 0 {
			tag = len(r.text) - r.at
		}
		if err := r.addText(r.text[r.at : r.at+tag]); err != nil {
			return nil, err
		}
		r.at += tag
		if r.at == len(r.text) {
			break
		}
		if err := r.markup(); err != nil {
			return nil, err
		}
	}
	switch {
	case r.open != nil:
		return nil, fmt.Errorf("element %s is not closed", r.open.Name)
	case r.root == nil:
		return nil, errors.New("no element")
	}
	return r.root, nil
}

// addText adds text to the innermost element. There may be space outside of the root.
func (r *reader) addText(text string) error {
	if r.open == nil {
		if strings.TrimSpace(text) != "" {
			return errors.New("text outside of the root")
		}
		return nil
	}
	text, err := unescape(text)
	if r.open.Text == "" {
		r.open.Text = text
		return err
	}
	if r.open.first == nil || strings.TrimSpace(text) != "" || strings.TrimSpace(r.open.Text) != "" {
		r.open.Text += text
	}
	return err
}

// markup reads what begins with "<".
func (r *reader) markup() error {
	rest := r.text[r.at:]
	switch {
	case strings.HasPrefix(rest, "<!--"):
		_, err := r.until("<!--", "-->")
		return err
	case strings.HasPrefix(rest, "<![CDATA["):
		text, err := r.until("<![CDATA[", "]]>")
		if err == nil && r.open == nil {
			return errors.New("text outside of the root")
		}
		if err == nil {
			r.open.Text += lines(text)
		}
		return err
	case strings.HasPrefix(rest, "<?"):
		_, err := r.until("<?", "?>")
		return err
	case strings.HasPrefix(rest, "<!"):
		return errors.New("a document type")
	case strings.HasPrefix(rest, "</"):
		name, err := r.until("</", ">")
		if err != nil {
			return err
		}
		return r.close(strings.TrimRight(name, " \t\r\n"))
	default:
		return r.element()
	}
}

// until skips a markup and returns its inner text.
func (r *reader) until(begin, end string) (string, error) {
	rest := r.text[r.at+len(begin):]
	i := strings.Index(rest, end)
	if i < 0 {
		return "", fmt.Errorf("%s without %s", begin, end)
	}
	r.at += len(begin) + i + len(end)
	return rest[:i], nil
}

func (r *reader) close(name string) error {
	prefix, local := split(name)
	if r.open == nil || r.open.Name != local || r.open.prefix != prefix {
		return fmt.Errorf("</%s> closes no element", name)
	}
	r.open = r.open.parent
	return nil
}

// element reads a start tag.
func (r *reader) element() error {
	r.at++
	name := r.name()
	if !isName(name) {
		return fmt.Errorf("invalid XML name: %q", name)
	}
	e := r.fresh()
	e.parent = r.open
	e.prefix, e.Name = split(name)
	switch {
	case r.open != nil && r.open.last != nil:
		r.open.last.next, r.open.last = e, e
	case r.open != nil:
		r.open.first, r.open.last = e, e
	case r.root != nil:
		return errors.New("a second root")
	default:
		r.root = e
	}
	if cap(r.attrs)-len(r.attrs) == 0 {
		r.attrs = make([]attr, 0, together)
	}
	from := len(r.attrs)
	for {
		r.space()
		e.attrs = r.attrs[from:len(r.attrs):len(r.attrs)]
		switch rest := r.text[r.at:]; {
		case strings.HasPrefix(rest, "/>"):
			r.at += len("/>")
			return nil
		case strings.HasPrefix(rest, ">"):
			r.at++
			r.open = e
			return nil
		}
		a, err := r.attribute()
		if err != nil {
			return err
		}
		r.attrs = append(r.attrs, a)
	}
}

func (r *reader) attribute() (a attr, err error) {
	name := r.name()
	r.space()
	if !isName(name) || !strings.HasPrefix(r.text[r.at:], "=") {
		return a, fmt.Errorf("no attribute, or an invalid XML name: %q", name)
	}
	r.at++
	r.space()
	if r.at == len(r.text) || r.text[r.at] != '"' && r.text[r.at] != '\'' {
		return a, fmt.Errorf("attribute %s has no quoted value", name)
	}
	quote := r.text[r.at : r.at+1]
	value, err := r.until(quote, quote)
	if err != nil || strings.IndexByte(value, '<') >= 0 {
		return a, fmt.Errorf("the value of attribute %s does not end", name)
	}
	a.prefix, a.name = split(name)
	a.value, err = unescape(value)
	return a, err
}

func (r *reader) space() {
	for r.at < len(r.text) && isSpace(r.text[r.at]) {
		r.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// name reads the name of an element or an attribute; "": there is none.
func (r *reader) name() string {
	from := r.at
	for r.at < len(r.text) && !isSpace(r.text[r.at]) {
		switch r.text[r.at] {
		case '=', '/', '>', '<', '\'', '"':
			return r.text[from:r.at]
		}
		r.at++
	}
	return r.text[from:r.at]
}

// isName reports whether encoding/xml takes a name, too: a document that is read here can be edited
// there. (XML 1.0 allows more names since its fifth edition.)
func isName(name string) bool {
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', i > 0 && (c >= '0' && c <= '9' || c == '-' || c == '.' || c == ':'):
		case c >= utf8.RuneSelf:
			_, err := xml.NewDecoder(strings.NewReader("<" + name + "/>")).Token()
			return err == nil
		default:
			return false
		}
	}
	return name != ""
}

func split(name string) (prefix, local string) {
	if prefix, local, ok := strings.Cut(name, ":"); ok {
		return prefix, local
	}
	return "", name
}

// lines returns a text with the line ends of XML.
func lines(text string) string {
	if strings.IndexByte(text, '\r') < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// unescape replaces the entities of a text.
func unescape(text string) (string, error) {
	text = lines(text)
	if strings.IndexByte(text, '&') < 0 {
		return text, nil
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "&")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, ended := strings.Cut(rest, ";")
		value, known := entity(name)
		if !ended || !known {
			return "", fmt.Errorf("unknown entity &%.10s", rest)
		}
		b.WriteString(value)
		text = after
	}
}

// entity returns the value of a predefined or numeric entity.
func entity(name string) (value string, known bool) {
	switch name {
	case "lt":
		return "<", true
	case "gt":
		return ">", true
	case "amp":
		return "&", true
	case "apos":
		return "'", true
	case "quot":
		return `"`, true
	}
	digits, base := strings.TrimPrefix(name, "#"), 10
	if strings.HasPrefix(name, "#x") {
		digits, base = name[2:], 16
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil || digits == name || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return "", false
	}
	return string(rune(n)), true
}
