package guest_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/providers"
	"vmctl/providers/guest"
)

// tree describes the files under a folder, one line each.
func tree(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(text)
		case info.Mode()&fs.ModeSymlink != 0:
			if content, err = os.Readlink(path); err != nil {
				return err
			}
		}
		mode := info.Mode().String()
		if info.Mode()&fs.ModeSymlink != 0 {
			mode = "link" // its mode says nothing
		}
		fmt.Fprintf(&all, "%s %q %q\n", mode, name, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func write(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a test compares it
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// A folder that is copied into a guest and back is the same, whatever its names.
func TestCopyThereAndBack(t *testing.T) {
	home, from, back := t.TempDir(), filepath.Join(t.TempDir(), "-it's $(here)"), filepath.Join(t.TempDir(), "back")
	write(t, filepath.Join(from, "a b", "-rf"), "x\n", 0o640)
	write(t, filepath.Join(from, "run.sh"), strings.Repeat("#", 200_000), 0o755)
	write(t, filepath.Join(from, strings.Repeat("long", 50), strings.Repeat("name", 50)), "", 0o600)
	if err := os.Symlink("../outside", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	g := guest.InFolder(home, []string{"PATH=" + os.Getenv("PATH")})
	done, err := guest.CopyIn(t.Context(), g, from, "-there")
	if err != nil || done.Files != 3 || done.Bytes != 200_002 {
		t.Fatalf("%+v, %v", done, err)
	}
	if diff := cmp.Diff(tree(t, from), tree(t, filepath.Join(home, "-there"))); diff != "" {
		t.Errorf("in the guest (-want +got):\n%s", diff)
	}
	if _, err := guest.CopyOut(t.Context(), g, "-there", back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tree(t, from), tree(t, back)); diff != "" {
		t.Errorf("back (-want +got):\n%s", diff)
	}
	// Into a folder that is there.
	if _, err := guest.CopyIn(t.Context(), g, filepath.Join(from, "run.sh"), "-there/a b"); err != nil {
		t.Fatal(err)
	}
	if _, err := guest.CopyOut(t.Context(), g, "-there/a b/run.sh", back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tree(t, from), tree(t, back)); diff != "" {
		t.Errorf("a file into a folder (-want +got):\n%s", diff)
	}
}

func TestCopyFails(t *testing.T) {
	home, here := t.TempDir(), t.TempDir()
	write(t, filepath.Join(here, "f"), "x", 0o600)
	g := guest.InFolder(home, []string{"PATH=" + os.Getenv("PATH")})
	for _, c := range []struct{ name, got, want string }{
		{"no source here", in(t, g, filepath.Join(here, "none"), "x"), "no such file"},
		{"no source there", out(t, g, "none", here), "copy none of the guest: it does not exist"},
		{"no folder there", in(t, g, filepath.Join(here, "f"), "none/f"), "none"},
		{"a folder is asked for", in(t, g, filepath.Join(here, "f"), "none/"), "none/ is no folder in the guest"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}

func in(t *testing.T, g providers.Guest, from, to string) string {
	t.Helper()
	_, err := guest.CopyIn(t.Context(), g, from, to)
	return fmt.Sprint(err)
}

func out(t *testing.T, g providers.Guest, from, to string) string {
	t.Helper()
	_, err := guest.CopyOut(t.Context(), g, from, to)
	return fmt.Sprint(err)
}

// forger is a guest that sends an archive of its own making.
type forger struct {
	providers.Guest
	archive []byte
}

func (f forger) Run(_ context.Context, c providers.Command) (providers.Output, error) {
	answer := f.archive
	if strings.Contains(c.Args[2], "echo") {
		answer = []byte("folder\n")
	}
	_, err := c.Stdout.Write(answer)
	return providers.Output{}, err
}

// A guest cannot write beside the target: neither by a name, nor through a link that it sent before, nor by a link to a
// file of the host.
func TestCopyOutStaysInside(t *testing.T) {
	for name, members := range map[string][]tar.Header{
		"a name":      {{Name: "../evil", Typeflag: tar.TypeReg, Mode: 0o600}},
		"an absolute": {{Name: "/evil", Typeflag: tar.TypeReg, Mode: 0o600}},
		"a link":      {{Name: "l", Linkname: "..", Typeflag: tar.TypeSymlink}, {Name: "l/evil", Typeflag: tar.TypeReg, Mode: 0o600}},
		"a hard link": {{Name: "h", Linkname: "../secret", Typeflag: tar.TypeLink}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for i := range members {
			if err := w.WriteHeader(&members[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		around := t.TempDir()
		write(t, filepath.Join(around, "secret"), "s", 0o600)
		_, err := guest.CopyOut(t.Context(), forger{archive: b.Bytes()}, "x", filepath.Join(around, "target"))
		if err == nil {
			t.Errorf("%s: the copy went well", name)
		}
		if _, evil := os.Lstat(filepath.Join(around, "evil")); evil == nil {
			t.Errorf("%s: a file stands beside the target", name)
		}
		if _, evil := os.Lstat(filepath.Join(around, "target", "h")); evil == nil {
			t.Errorf("%s: a file of the host was linked", name)
		}
	}
}
