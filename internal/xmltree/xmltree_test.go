package xmltree_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/internal/xmltree"
)

// shown writes a tree as text.
func shown(e *xmltree.Element, names []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<%s %s>%q", e.Space(), e.Name, trimmed(e.Text))
	for _, name := range names {
		if v := e.Attr(name); v != "" {
			fmt.Fprintf(&b, " %s=%q", name, v)
		}
	}
	for _, c := range e.All("") {
		b.WriteString(shown(c, names))
	}
	return b.String() + "</>"
}

// trimmed returns a text; the space between elements is none.
func trimmed(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}

// node is a tree as encoding/xml reads it.
type node struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []node     `xml:",any"`
}

func (n node) shown(names []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<%s %s>%q", n.XMLName.Space, n.XMLName.Local, trimmed(n.Text))
	for _, name := range names {
		i := slices.IndexFunc(n.Attrs, func(a xml.Attr) bool { return a.Name.Space == "" && a.Name.Local == name })
		if i >= 0 && n.Attrs[i].Value != "" {
			fmt.Fprintf(&b, " %s=%q", name, n.Attrs[i].Value)
		}
	}
	for _, c := range n.Children {
		b.WriteString(c.shown(names))
	}
	return b.String() + "</>"
}

// document draws a document.
func document(t *rapid.T, depth int) string {
	name := rapid.SampledFrom([]string{"a", "b", "x:a", "long-name", "ä.1"}).Draw(t, "name")
	text := rapid.SampledFrom([]string{
		"", "text", "&lt;&amp;&#65;&#x42;&quot;&apos;&gt;", " \n ", "<!-- <b> -->", "<![CDATA[<a>&]]>", "<?php >?>", "ä", "a\r\nb\rc", "]]&gt;",
	})
	attr := rapid.SampledFrom([]string{"", " k='v'", ` k="it's"`, " n = '&lt;\n&#10;'", " y:k='1'", " xmlns:x='urn:other'", " xmlns='urn:default'"})
	open := name + attr.Draw(t, "attribute") + rapid.SampledFrom([]string{"", " "}).Draw(t, "space")
	if rapid.Bool().Draw(t, "empty") {
		return "<" + open + "/>"
	}
	var b strings.Builder
	b.WriteString("<" + open + ">" + text.Draw(t, "text"))
	for range rapid.IntRange(0, max(0, 3-depth)).Draw(t, "children") {
		b.WriteString(document(t, depth+1) + text.Draw(t, "text"))
	}
	return b.String() + "</" + name + " >"
}

// A document has the same tree as in encoding/xml.
func TestParseAsTheStandardLibraryDoes(t *testing.T) {
	names := []string{"k", "n"}
	rapid.Check(t, func(t *rapid.T) {
		text := "<?xml version='1.0'?>\n<root xmlns:x='urn:x' xmlns:y='urn:y'>" + document(t, 0) + "</root>\n"
		var want node
		if err := xml.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, err := xmltree.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want.shown(names), shown(got, names)); diff != "" {
			t.Errorf("%s\n(-want +got):\n%s", text, diff)
		}
	})
}

// A document with an error is refused, as by encoding/xml.
func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "text", "<a>", "<a></b>", "<a", "<a k>", "<a k=v/>", "<a k='v/>", "<a k='<'/>", "<a/>text", "<a>&nosuch;</a>", "<a>&amp</a>",
		"<a>&#;</a>", "<1/>", "<a -k=''/>", "<a><ȡ/></a>", "<a ȡ='v'/>", "<a><!-- </a>", "<a><![CDATA[ </a>", "</a>", "<a></a></a>", "<a>\xff</a>", "<>", "< a/>", "<a><b></a></b>", "<x:a xmlns:x='u'></a>",
	} {
		if got, err := xmltree.Parse(text); err == nil {
			t.Errorf("%q is read as %s", text, shown(got, nil))
		}
		if standard(text) == nil {
			t.Errorf("encoding/xml reads %q", text)
		}
	}
	for _, text := range []string{"<a/><b/>", "<!DOCTYPE a><a/>", "<a/><![CDATA[x]]>", "<a>&#xD800;</a>"} { // encoding/xml does not mind
		if _, err := xmltree.Parse(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// standard returns the error of encoding/xml for a document.
func standard(text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	elements, depth := 0, 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			if elements == 0 {
				return errors.New("no element")
			}
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements, depth = elements+1, depth+1
		case xml.EndElement:
			depth--
		case xml.CharData:
			if depth == 0 && strings.TrimSpace(string(token)) != "" {
				return errors.New("text outside of the root")
			}
		}
	}
}

func TestChild(t *testing.T) {
	root, err := xmltree.Parse("<a><b><c>1</c><c>2</c></b><d k='v'/></a>")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{root.Child("b", "c").String(), root.Child("d").Attr("k"), root.Child("b", "x", "y").String(), root.Child("x").Attr("k"), root.Child("x").Space()}
	if diff := cmp.Diff([]string{"1", "v", "", "", ""}, got); diff != "" || len(root.Child("b").All("c")) != 2 || root.Child("x").All("y") != nil {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
