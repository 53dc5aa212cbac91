package spec

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// WorkspacesFile is the name of the spec file into which vmctl writes the blocks of workspaces.
const WorkspacesFile = "workspaces" + Suffix

// NewWorkspace describes a workspace that has no block yet.
type NewWorkspace struct {
	Branch string // made if the repository lacks it
	Repo   string // a folder of this host
	Path   string // absolute
	VM     Address
	OnHost bool // there is no VM
}

// Address returns the address of the workspace, which no workspace of another branch gets.
func (w NewWorkspace) Address() Address { return Address{Kind: Workspace, Name: LabelOf(w.Branch)} }

// AddWorkspace returns the text of a spec file with the block of a workspace at its end. All else stays as it is.
func AddWorkspace(src []byte, w NewWorkspace) []byte {
	text := w.block()
	out := bytes.Clone(src)
	if len(out) > 0 {
		if out[len(out)-1] != '\n' {
			out = append(out, '\n')
		}
		out = append(out, '\n')
	}
	return fmt.Appendf(out, "%s\n%s\n", writtenMark(text), text)
}

// block returns the block, formatted, without a line end.
func (w NewWorkspace) block() []byte {
	file := hclwrite.NewEmptyFile()
	body := file.Body().AppendNewBlock(workspaceShape.Name, []string{w.Address().Name}).Body()
	if !w.OnHost {
		body.SetAttributeTraversal("vm", w.VM.traversal())
	}
	body.SetAttributeValue("repo", cty.StringVal(w.Repo))
	body.SetAttributeValue("branch", cty.StringVal(w.Branch))
	body.SetAttributeValue("path", cty.StringVal(w.Path))
	body.SetAttributeValue("create_branch", cty.True)
	return bytes.TrimRight(hclwrite.Format(file.Bytes()), "\n")
}

// writtenMark returns the comment above a block that vmctl wrote. It fits no other text of the block.
func writtenMark(block []byte) string {
	sum := sha256.Sum256(bytes.ReplaceAll(block, []byte("\r\n"), []byte("\n")))
	return fmt.Sprintf("# Written by `vmctl workspace open` (%x): `vmctl workspace close` removes it, unless somebody edits it.", sum[:4])
}

// RemoveWorkspace returns the text of a spec file without the block of a workspace that AddWorkspace wrote, and with all else
// as it is. removed is false if the file has no such block, or if somebody has edited it since. It fails if the file does not
// parse.
func RemoveWorkspace(src []byte, filename string, addr Address) (out []byte, removed bool, diags hcl.Diagnostics) {
	start, end, found, diags := writtenBlock(src, filename, addr)
	if !found || diags.HasErrors() {
		return src, false, diags
	}
	if bytes.HasSuffix(src[:start], []byte("\n\n")) { // as AddWorkspace wrote it
		start--
	}
	return append(bytes.Clone(src[:start]), src[end:]...), true, nil
}

// writtenBlock finds a block that vmctl wrote, with its mark and its line end.
func writtenBlock(src []byte, filename string, addr Address) (start, end int, found bool, diags hcl.Diagnostics) {
	file, diags := parseSource(src, filename)
	if diags.HasErrors() {
		return 0, 0, false, diags
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return 0, 0, false, nil
	}
	for _, b := range body.Blocks {
		if b.Type != string(addr.Kind) || len(b.Labels) != 1 || b.Labels[0] != addr.Name {
			continue
		}
		start, end = b.TypeRange.Start.Byte, b.CloseBraceRange.End.Byte
		above, isMarked := bytes.CutSuffix(bytes.TrimSuffix(bytes.TrimSuffix(src[:start], []byte("\n")), []byte("\r")), []byte(writtenMark(src[start:end])))
		rest, _, _ := bytes.Cut(src[end:], []byte("\n"))
		if !isMarked || len(above) > 0 && above[len(above)-1] != '\n' || len(bytes.TrimSpace(rest)) > 0 {
			return 0, 0, false, nil
		}
		return len(above), min(end+len(rest)+1, len(src)), true, nil
	}
	return 0, 0, false, nil
}
