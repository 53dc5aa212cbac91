package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/atomicfile"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWriteReplacesContentAndMode(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	for _, mode := range []fs.FileMode{0o600, 0o666, 0o400, 0o644} {
		want := mode.String()
		if err := atomicfile.Write(path, []byte(want), mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != mode || text(t, path) != want {
			t.Errorf("file is %v %q, want %v %q", info.Mode(), text(t, path), mode, want)
		}
	}
	if d := cmp.Diff([]string{"state.json"}, names(t, dir)); d != "" {
		t.Errorf("folder (-want +got):\n%s", d)
	}
}

// A content that fails half way leaves the old one and no file beside it, and its error is whole.
func TestWriteFromKeepsTheOldContent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "patch")
	put(t, path, "old")
	fails := func(to io.Writer) error {
		_, err := io.WriteString(to, "half")
		return errors.Join(err, &fs.PathError{Op: "read", Path: "/source", Err: fs.ErrPermission})
	}
	want := "write " + path + ": read /source: permission denied"
	if err := atomicfile.WriteFrom(path, 0o600, fails); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if d := cmp.Diff([]string{"patch"}, names(t, dir)); d != "" || text(t, path) != "old" {
		t.Errorf("it is %q; folder (-want +got):\n%s", text(t, path), d)
	}
	err := atomicfile.WriteFrom(path, 0o600, func(to io.Writer) error {
		_, err := io.WriteString(to, "new")
		return err
	})
	if err != nil || text(t, path) != "new" {
		t.Errorf("it is %q: %v", text(t, path), err)
	}
}

func TestWriteReplacesALinkAndNotItsTarget(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	put(t, target, "old")
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(link, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := text(t, target) + " " + text(t, link); got != "old new" {
		t.Errorf("target and link: %q, want %q", got, "old new")
	}
}

// row X12
func TestFailedWriteLeavesNoTemp(t *testing.T) {
	dir := t.TempDir()
	inTheWay := filepath.Join(dir, "state.json")
	if err := os.MkdirAll(filepath.Join(inTheWay, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing", "state.json")
	for _, test := range []struct{ path, want string }{
		{inTheWay, "write " + inTheWay + ": put it in place: file exists"},
		{missing, "write " + missing + ": make a file beside it: no such file or directory"},
	} {
		err := atomicfile.Write(test.path, []byte("new"), 0o600)
		if d := cmp.Diff(test.want, fmt.Sprint(err)); d != "" {
			t.Errorf("error (-want +got):\n%s", d)
		}
	}
	if d := cmp.Diff([]string{"state.json"}, names(t, dir)); d != "" {
		t.Errorf("folder (-want +got):\n%s", d)
	}
}

func TestCleanRemovesOnlyTempsOfItsPath(t *testing.T) {
	dir := t.TempDir()
	keep := []string{".state.json.backup.77.tmp", ".state.json.tmp", ".state.json..tmp", ".state.json.a1.tmp", ".state.json.12", "state.json"}
	for _, name := range append(keep, ".state.json.1.tmp", ".state.json.4294967295.tmp") {
		put(t, filepath.Join(dir, name), name)
	}
	if err := atomicfile.Clean(filepath.Join(dir, "state.json")); err != nil {
		t.Fatal(err)
	}
	want := []string{".state.json..tmp", ".state.json.12", ".state.json.a1.tmp", ".state.json.backup.77.tmp", ".state.json.tmp", "state.json"}
	if d := cmp.Diff(want, names(t, dir)); d != "" {
		t.Errorf("folder (-want +got):\n%s", d)
	}
	if err := atomicfile.Clean(filepath.Join(dir, "missing", "state.json")); err != nil {
		t.Errorf("cleaning a folder that does not exist: %v", err)
	}
}

// Of several that create one file, one does, and the others leave it as it is.
func TestCreateKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new")
	errs := make(chan error)
	for i := range 8 {
		go func() { errs <- atomicfile.Create(path, []byte{byte('a' + i)}, 0o640) }()
	}
	made := 0
	for range 8 {
		switch err := <-errs; {
		case err == nil:
			made++
		case !errors.Is(err, fs.ErrExist):
			t.Error(err)
		}
	}
	if made != 1 {
		t.Errorf("%d of 8 made the file", made)
	}
	before := text(t, path)
	if err := atomicfile.Create(path, []byte("other"), 0o600); !errors.Is(err, fs.ErrExist) || text(t, path) != before {
		t.Errorf("created once more: %v, and it is %q, was %q", err, text(t, path), before)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left in the folder: %v", got)
	}
}
