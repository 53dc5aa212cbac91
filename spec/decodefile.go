package spec

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// file checks that a file can be read.
func (d *decoder) file(v cty.Value, known Attr, p location, owner string) cty.Value {
	if _, err := d.files.digest(v.AsString()); err != nil && !d.files.toleratesMissing(err) {
		d.add(mistake(p.rng, "Unreadable file", "`%s` of `%s` is %q, which cannot be used: %s. %s",
			p.path, owner, v.AsString(), err, fileHint(v.AsString(), err)))
		return cty.UnknownVal(known.Type)
	}
	return v
}

// fileHint returns the advice for a file that cannot be read.
func fileHint(path string, err error) string {
	switch {
	case strings.HasPrefix(path, "~"):
		return "`~` means nothing here: write the whole path."
	case errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(path):
		return "Relative paths are read from the folder of the spec."
	case errors.Is(err, fs.ErrNotExist):
		return "Correct the path, or put the file there."
	case errors.Is(err, fs.ErrPermission):
		return "Give yourself the right to read it, for example with `chmod u+r`."
	default:
		return "Name a file with content."
	}
}

// digest returns the SHA-256 of the file that v names.
func (d *decoder) digest(v cty.Value) cty.Value {
	switch {
	case !v.IsKnown():
		return cty.UnknownVal(cty.String)
	case v.IsNull():
		return cty.NullVal(cty.String)
	}
	sum, err := d.files.digest(v.AsString())
	if err != nil {
		return cty.UnknownVal(cty.String)
	}
	return cty.StringVal(sum)
}
