package spec

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// IgnoredDrift is one entry of a file of ignored drift.
type IgnoredDrift struct {
	Address string    // of a resource, or of a block with for_each: all of its instances
	Path    string    // of an attribute; "": the whole object
	Reason  string    // why it is ignored
	Owner   string    // the person or team to ask
	Expiry  time.Time // the moment after which it is not ignored any more; zero: never
	Line    int
}

// Covers reports whether an entry is about an attribute of a resource, or about its object if path
// is empty.
func (d IgnoredDrift) Covers(a Address, path string) bool {
	if d.Address != a.String() && d.Address != a.Block().String() {
		return false
	}
	return d.Path == "" || d.Path == path || strings.HasPrefix(path, d.Path+".")
}

// ParseIgnoredDrift reads a file of ignored drift: `ignore` blocks with address, path, reason, owner
// and expiry. Reason and owner are required. An expiry is a date, whose day counts as a whole in
// UTC, or a time as in RFC 3339.
func ParseIgnoredDrift(src []byte, filename string) ([]IgnoredDrift, hcl.Diagnostics) {
	file, diags := parseSource(src, filename)
	if diags.HasErrors() {
		return nil, sortUnique(diags)
	}
	content, more := file.Body.Content(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "ignore"}}})
	diags = append(diags, more...)
	var all []IgnoredDrift
	for _, block := range content.Blocks {
		entry, more := ignoredDrift(block)
		diags = append(diags, more...)
		all = append(all, entry)
	}
	return all, sortUnique(diags)
}

func ignoredDrift(block *hcl.Block) (IgnoredDrift, hcl.Diagnostics) {
	entry := IgnoredDrift{Line: block.DefRange.Start.Line}
	content, diags := block.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{
		{Name: "address", Required: true}, {Name: "path"}, {Name: "reason", Required: true}, {Name: "owner", Required: true}, {Name: "expiry"},
	}})
	for name, into := range map[string]*string{"address": &entry.Address, "path": &entry.Path, "reason": &entry.Reason, "owner": &entry.Owner} {
		if attr, ok := content.Attributes[name]; ok {
			var more hcl.Diagnostics
			*into, more = ignoredText(attr)
			diags = append(diags, more...)
		}
	}
	attr, ok := content.Attributes["expiry"]
	if !ok {
		return entry, diags
	}
	text, more := ignoredText(attr)
	diags = append(diags, more...)
	if more.HasErrors() {
		return entry, diags
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		entry.Expiry = day.AddDate(0, 0, 1)
		return entry, diags
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Unknown expiry", Subject: attr.Expr.Range().Ptr(),
			Detail: fmt.Sprintf("%q is neither a date such as 2026-12-31 nor a time such as 2026-12-31T12:00:00Z.", text),
		})
	}
	entry.Expiry = at
	return entry, diags
}

// ignoredText returns the text of an attribute, or the address that it names without quotes.
func ignoredText(attr *hcl.Attribute) (string, hcl.Diagnostics) {
	if traversal, diags := hcl.AbsTraversalForExpr(attr.Expr); !diags.HasErrors() {
		return traversalText(traversal), nil
	}
	v, diags := attr.Expr.Value(nil)
	if diags.HasErrors() {
		return "", diags
	}
	if v.Type() != cty.String || v.IsNull() || v.AsString() == "" {
		return "", hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Text expected", Subject: attr.Expr.Range().Ptr(),
			Detail: fmt.Sprintf("%s is a text, such as %s = \"…\".", attr.Name, attr.Name),
		}}
	}
	return v.AsString(), nil
}

func traversalText(t hcl.Traversal) string {
	var b strings.Builder
	for _, step := range t {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			if s.Key.Type() == cty.String {
				b.WriteString("[" + strconv.Quote(s.Key.AsString()) + "]")
			}
		}
	}
	return b.String()
}
