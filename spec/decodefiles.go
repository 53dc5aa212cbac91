package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
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
		return "`~` is not expanded: write the full path."
	case errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(path):
		return "Relative paths are read from the folder of the spec."
	case errors.Is(err, fs.ErrNotExist):
		return "Correct the path, or put the file there."
	case errors.Is(err, fs.ErrPermission):
		return "Make it readable, for example with `chmod u+r`."
	default:
		return "Name a regular file that is not empty."
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

// derived returns the digest of the file, or of what a build gets of the folder, that another attribute names.
func (d *decoder) derived(a Attr, body *hclsyntax.Body, shape Block, values map[string]cty.Value, p location) cty.Value {
	of, _ := shape.attr(a.DigestOf)
	dir, dockerfile := values[a.DigestOf], values["dockerfile"]
	switch {
	case of.Form != BuildContext:
		return d.digest(dir)
	case !dir.IsKnown() || dir.IsNull() || !dockerfile.IsKnown() || dockerfile.IsNull():
		return cty.UnknownVal(cty.String)
	case d.files == nil:
		return cty.UnknownVal(cty.String)
	}
	sum, err := d.files.context(dir.AsString(), dockerfile.AsString())
	if err != nil {
		if !d.files.toleratesMissing(err) {
			rng := p.rng
			if written := body.Attributes[a.DigestOf]; written != nil {
				rng = written.Expr.Range()
			}
			d.add(mistake(rng, "Unreadable folder", "`%s` of `%s` is %q, of which no image can be built: %s. %s",
				p.join(a.DigestOf).path, d.owner, dir.AsString(), err, contextHint(dir.AsString())))
		}
		return cty.UnknownVal(cty.String)
	}
	return cty.StringVal(sum)
}

// contextHint returns the advice for a folder of which no image can be built.
func contextHint(path string) string {
	if strings.HasPrefix(path, "~") {
		return "`~` is not expanded: write the full path."
	}
	return "Name a folder that has the Dockerfile and all that it copies; relative paths are read from the folder of the spec."
}

// IsURL reports whether an image's source is fetched, and no file.
func IsURL(source string) bool { return strings.Contains(source, "://") }

// sourceProblem returns the mistake in a path or a URL: the rest of a sentence that begins with
// the attribute; "": there is none.
func sourceProblem(text string) string {
	if !IsURL(text) {
		if text == "" || strings.ContainsRune(text, 0) {
			return fmt.Sprintf("is %q, which is not a file path.", shorten(text))
		}
		return ""
	}
	u, err := url.Parse(text)
	switch {
	case err == nil && u.Scheme == "file" && u.Path != "":
		return fmt.Sprintf("is %q. Write the path alone: %q.", shorten(text), shorten(u.Path))
	case err != nil || u.Host == "":
		return "is not a URL that vmctl can fetch. Write for example \"https://example.org/debian.qcow2\", or the path of a file."
	case u.User != nil:
		return "contains a user name or a password, which the state and plans would show. Download the file yourself, and write its path."
	case u.Scheme == "http" || u.Scheme == "https":
		return ""
	default:
		return fmt.Sprintf("is %q, but vmctl fetches only http and https URLs. Write such a URL, or the path of a file.", shorten(text))
	}
}

// canonicalFolder returns the shortest text for the path of a folder of this host, or the mistake in
// it: the rest of a sentence that begins with the attribute. "~" at its beginning stays.
func canonicalFolder(text string) (folder, problem string) {
	switch {
	case text == "" || strings.ContainsFunc(text, isControl):
		return "", fmt.Sprintf("is %q, which is not the path of a folder.", shorten(text))
	case strings.HasPrefix(text, "~") && text != "~" && !strings.HasPrefix(text, "~/"):
		return "", fmt.Sprintf("is %q, but only `~/` stands for a home folder: the one of the user who runs vmctl. Write the full path.", shorten(text))
	}
	folder = filepath.Clean(text)
	if strings.HasPrefix(folder, "~") != strings.HasPrefix(text, "~") {
		folder = "./" + folder
	}
	return folder, ""
}

// source notes a file that making the resource lacks.
func (d *decoder) source(path string, p location, owner string) {
	if d.files == nil || IsURL(path) {
		return
	}
	if err := d.files.readable(path); err != nil {
		d.missing = append(d.missing, Flaw{Path: p.path, Summary: "Unreadable file", Detail: fmt.Sprintf(
			"`%s` of `%s` is %q, which cannot be used: %s. %s", p.path, owner, path, err, fileHint(path, err))})
	}
}

// readable opens and closes a file anywhere on this machine; relative paths begin
// in the folder.
func (f *folder) readable(path string) error {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.dir, path)
	}
	file, err := openRegular(path)
	if err != nil {
		return err
	}
	closeRead(file)
	return nil
}
