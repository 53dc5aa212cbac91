package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"vmctl/internal/atomicfile"
)

// initFile is the file that Init writes if no file has a vmctl block.
const initFile = "vmctl" + Suffix

const fileMode = 0o644 // of a new spec

// Init writes project and id into the vmctl block of a folder's spec, or into a new file, and
// returns the path of the file that holds them, and whether it wrote. It keeps values that are
// there already: a block with both is not touched. The file is replaced as a whole or not at all.
// Files that do not parse are an error.
func Init(dir, project, id string) (path string, wrote bool, err error) {
	if err := errors.Join(CheckProject(project), CheckID(id)); err != nil {
		return "", false, err
	}
	path, src, block, err := findSettings(dir)
	if err != nil {
		return "", false, fmt.Errorf("write project and id: %w", err)
	}
	out := appendSettings(src, project, id)
	if block == nil && src == nil {
		err := atomicfile.Create(path, out, fileMode)
		if err == nil {
			return path, true, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", false, fmt.Errorf("write project and id: %w", err)
		}
		// Another init was faster: its values count.
		if path, src, block, err = findSettings(dir); err != nil {
			return "", false, fmt.Errorf("write project and id: %w", err)
		}
		out = appendSettings(src, project, id)
	}
	if block != nil {
		lines, err := missingSettings(block, project, id)
		if err != nil || lines == nil {
			return path, false, err
		}
		out = insertSettings(src, block, lines)
	}
	if err := replaceFile(path, out); err != nil {
		return "", false, fmt.Errorf("write project and id: %w", err)
	}
	return path, true, nil
}

// findSettings finds the file with the vmctl block, or the one to write it into.
func findSettings(dir string) (string, []byte, *hclsyntax.Block, error) {
	paths, err := SpecFiles(dir)
	if err != nil {
		return "", nil, nil, err
	}
	path, src := filepath.Join(dir, initFile), []byte(nil)
	for _, p := range paths {
		file, diags := parseFile(p)
		if diags.HasErrors() {
			return "", nil, nil, fmt.Errorf("%s does not parse: %w", p, diags)
		}
		body, ok := file.Body.(*hclsyntax.Body)
		if !ok {
			continue
		}
		for _, b := range body.Blocks {
			if b.Type == vmctlShape.Name {
				return p, file.Bytes, b, nil
			}
		}
		if p == path {
			src = file.Bytes
		}
	}
	return path, src, nil, nil
}

// missingSettings returns the lines that a vmctl block lacks.
func missingSettings(b *hclsyntax.Block, project, id string) ([]string, error) {
	var lines []string
	for _, want := range []struct {
		attr, value string
		check       func(string) error
	}{{"project", project, CheckProject}, {"id", id, CheckID}} {
		a, ok := b.Body.Attributes[want.attr]
		if !ok {
			lines = append(lines, fmt.Sprintf("%s = %q", want.attr, want.value))
			continue
		}
		v, diags := a.Expr.Value(nil)
		if diags.HasErrors() {
			return nil, fmt.Errorf("%s: %s is not a literal string: remove the line, or write one: %w", formatRange(a.SrcRange), want.attr, diags)
		}
		v, err := asText(v)
		if err == nil {
			err = want.check(text(v))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w; remove the line, and `vmctl init` writes it", formatRange(a.SrcRange), err)
		}
	}
	return lines, nil
}

// insertSettings puts lines into a vmctl block: after its project, else first.
func insertSettings(src []byte, b *hclsyntax.Block, lines []string) []byte {
	newline := "\n"
	if bytes.Contains(src, []byte("\r\n")) {
		newline = "\r\n"
	}
	formatted := bytes.Equal(src, hclwrite.Format(src))
	open, end := b.OpenBraceRange.End.Byte, b.CloseBraceRange.Start.Byte
	var out []byte
	if b.OpenBraceRange.Start.Line == b.CloseBraceRange.Start.Line {
		inner := strings.TrimSpace(string(src[open:end]))
		if inner != "" {
			lines = slices.Insert(lines, 0, inner)
		}
		out = slices.Concat(src[:open], []byte(newline+"  "+strings.Join(lines, newline+"  ")+newline), src[end:])
	} else {
		after := open
		if a, ok := b.Body.Attributes["project"]; ok {
			after = a.SrcRange.End.Byte
		}
		for after < len(src) && src[after] != '\n' {
			after++
		}
		after = min(after+1, len(src))
		out = slices.Concat(src[:after], []byte("  "+strings.Join(lines, newline+"  ")+newline), src[after:])
	}
	if formatted {
		return hclwrite.Format(out)
	}
	return out
}

// appendSettings adds a vmctl block to a file without one.
func appendSettings(src []byte, project, id string) []byte {
	block := fmt.Sprintf("# Written by `vmctl init`. Commit it: it says which objects belong to this project.\nvmctl {\n  project = %q\n  id      = %q\n}\n", project, id)
	if len(bytes.TrimSpace(src)) == 0 {
		return []byte(block)
	}
	return slices.Concat(bytes.TrimRight(src, "\r\n"), []byte("\n\n"+block))
}

// replaceFile replaces a file, or the one that a link at its path leads to, and keeps its
// mode.
func replaceFile(path string, content []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := os.FileMode(fileMode)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return atomicfile.Write(path, content, mode)
}
