package cli

import (
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"vmctl/cmd/internal/view"
)

// mistakes returns an error that holds diagnostics.
func (a *app) mistakes(diags hcl.Diagnostics, files map[string]*hcl.File) error {
	diags, files = a.shortened(diags, files)
	return &specError{diags: diags, files: files}
}

// warn shows diagnostics that stop nothing.
func (a *app) warn(diags hcl.Diagnostics, files map[string]*hcl.File) {
	diags, files = a.shortened(diags, files)
	view.Diagnostics(a.errScreen(), files, diags)
}

// shortened returns diagnostics and files with paths relative to the working directory, as
// short does.
func (a *app) shortened(diags hcl.Diagnostics, files map[string]*hcl.File) (hcl.Diagnostics, map[string]*hcl.File) {
	short := map[string]*hcl.File{}
	for name, file := range files {
		short[a.short(name)] = file
	}
	all := make(hcl.Diagnostics, len(diags))
	for i, d := range diags {
		d := *d
		d.Subject, d.Context = a.shortRange(d.Subject), a.shortRange(d.Context)
		all[i] = &d
	}
	return all, short
}

func (a *app) shortRange(r *hcl.Range) *hcl.Range {
	if r == nil {
		return nil
	}
	s := *r
	s.Filename = a.short(r.Filename)
	return &s
}

// short returns a path relative to the working directory if it is below that, else the path
// itself.
func (a *app) short(path string) string {
	rel, err := filepath.Rel(a.env.Dir, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return path
	}
	return rel
}
