package buildcontext_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/buildcontext"
)

var fixed = time.Unix(1, 0)

// folder makes a folder of files; one that ends with a slash is a folder, and "-> TARGET" is a symbolic link.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch target, isLink := strings.CutPrefix(text, "-> "); {
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.MkdirAll(path, 0o755))
		case isLink:
			err = errors.Join(err, os.Symlink(target, path))
		default:
			err = errors.Join(err, os.WriteFile(path, []byte(text), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func digest(t *testing.T, dir, dockerfile string) string {
	t.Helper()
	sum, err := buildcontext.Context{Dir: dir, Dockerfile: dockerfile}.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// A build gets what its .dockerignore leaves in, and always the Dockerfile. Links stay links.
func TestWrite(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"files", map[string]string{"Dockerfile": "FROM scratch", "a/b": "text", "empty/": ""}, "Dockerfile a/ a/b empty/"},
		{"links", map[string]string{"Dockerfile": "", "out": "-> /etc/passwd", "up": "-> ../..", "dir/": "", "in": "-> dir"}, "Dockerfile dir/ in->dir out->/etc/passwd up->../.."},
		{"ignored", map[string]string{"Dockerfile": "", ".dockerignore": "# not a.txt\n*.log\nnode\n", "a.txt": "", "a.log": "", "node/x": "", "sub/b.log": ""}, ".dockerignore Dockerfile a.txt sub/ sub/b.log"},
		{"all but one", map[string]string{"Dockerfile": "", ".dockerignore": "*\n!keep/this\n", "keep/this": "", "keep/that": "", "a": ""}, ".dockerignore Dockerfile keep/this"},
		{"the Dockerfile is ignored", map[string]string{"Dockerfile": "", ".dockerignore": "Dockerfile\n.dockerignore\n**/*.md", "a.md": "", "b/c.md": "", "b/d": ""}, ".dockerignore Dockerfile b/ b/d"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t, test.files)
			var b bytes.Buffer
			sum, err := buildcontext.Context{Dir: dir, Dockerfile: "Dockerfile"}.Write(&b)
			if err != nil || sum != digest(t, dir, "Dockerfile") {
				t.Errorf("it is written as %s, %v, and its digest is %s", sum, err, digest(t, dir, "Dockerfile"))
			}
			var got []string
			for r := tar.NewReader(&b); ; {
				h, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				text := h.Name
				if h.Linkname != "" {
					text += "->" + h.Linkname
				}
				if h.Uid != 0 || h.Gid != 0 {
					t.Errorf("%s is of user %d and group %d", h.Name, h.Uid, h.Gid)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("the archive (-want +got):\n%s", diff)
			}
		})
	}
}

// The digest tells whatever a build could notice, and nothing else.
func TestDigest(t *testing.T) {
	base := map[string]string{"Dockerfile": "FROM scratch", ".dockerignore": "*.log\nother.Dockerfile", "a": "one", "other.Dockerfile": "FROM x", "l": "-> a"}
	first := digest(t, folder(t, base), "Dockerfile")
	for _, test := range []struct {
		name   string
		change func(t *testing.T, dir string) error
		same   bool
	}{
		{"nothing", func(*testing.T, string) error { return nil }, true},
		{"a time", func(_ *testing.T, dir string) error {
			return os.Chtimes(filepath.Join(dir, "a"), fixed, fixed)
		}, true},
		{"what is ignored", func(_ *testing.T, dir string) error { return os.WriteFile(filepath.Join(dir, "x.log"), nil, 0o600) }, true},
		{"a Dockerfile of others that is ignored", func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "other.Dockerfile"), []byte("FROM y"), 0o600)
		}, true},
		{"a content", func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "a"), []byte("two"), 0o600)
		}, false},
		{"a mode", func(_ *testing.T, dir string) error { return os.Chmod(filepath.Join(dir, "a"), 0o755) }, false},
		{"a name", func(_ *testing.T, dir string) error {
			return os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b"))
		}, false},
		{"a new file", func(_ *testing.T, dir string) error { return os.WriteFile(filepath.Join(dir, "b"), nil, 0o600) }, false},
		{"a new folder", func(_ *testing.T, dir string) error { return os.Mkdir(filepath.Join(dir, "b"), 0o700) }, false},
		{"where a link leads", func(_ *testing.T, dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "l")), os.Symlink("b", filepath.Join(dir, "l")))
		}, false},
		{"a file in place of a link", func(_ *testing.T, dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "l")), os.WriteFile(filepath.Join(dir, "l"), []byte("a"), 0o600))
		}, false},
		{"the Dockerfile", func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM y"), 0o600)
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t, base)
			if err := test.change(t, dir); err != nil {
				t.Fatal(err)
			}
			if got := digest(t, dir, "Dockerfile"); (got == first) != test.same {
				t.Errorf("the digest is %s, and was %s; want the same: %t", got, first, test.same)
			}
		})
	}
	if got := digest(t, folder(t, base), "other.Dockerfile"); got == first {
		t.Error("another Dockerfile, which is ignored otherwise, has the same digest")
	}
}

// Mistakes are told with their cause.
func TestDigestFails(t *testing.T) {
	for _, test := range []struct {
		name       string
		files      map[string]string
		dockerfile string
		want       string
	}{
		{"no Dockerfile", map[string]string{"a": ""}, "Dockerfile", `it has no file "Dockerfile"`},
		{"a folder", map[string]string{"Dockerfile/": ""}, "Dockerfile", `"Dockerfile" in it is a folder`},
		{"a bad pattern", map[string]string{"Dockerfile": "", ".dockerignore": "[\n"}, "Dockerfile", ".dockerignore: "},
		{"an ignore file out of it", map[string]string{"Dockerfile": "", ".dockerignore": "-> /etc/passwd"}, "Dockerfile", "path escapes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := buildcontext.Context{Dir: folder(t, test.files), Dockerfile: test.dockerfile}.Digest()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it says %v, want %q", err, test.want)
			}
		})
	}
	if _, err := (buildcontext.Context{Dir: filepath.Join(t.TempDir(), "none"), Dockerfile: "Dockerfile"}).Digest(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestIsInside(t *testing.T) {
	for text, want := range map[string]bool{"Dockerfile": true, "a/b": true, "": false, ".": false, "../a": false, "/a": false, "a/../b": false, "a//b": false, `a\b`: false} {
		if got := buildcontext.IsInside(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
