package spec

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format returns src in the canonical layout. It only changes spaces: comments and everything
// that has a meaning stay. Source that does not parse is returned as it is, with diagnostics.
func Format(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	if _, diags := parseSource(src, filename); diags.HasErrors() {
		return src, sortUnique(diags)
	}
	return hclwrite.Format(src), nil
}
