package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"vmctl/internal/atomicfile"
)

func TestReadWaitsForNobody(t *testing.T) {
	dir := t.TempDir()
	pipe, file, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(file, []byte("text"), 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		if data, err := atomicfile.Read(path); err != nil || string(data) != "text" {
			t.Errorf("Read(%s) = %q, %v", path, data, err)
		}
	}
	for _, path := range []string{pipe, dir, os.DevNull} {
		_, err := atomicfile.Read(path)
		if want := "read " + path + ": it is no regular file"; !errors.Is(err, atomicfile.ErrNotRegular) || err.Error() != want {
			t.Errorf("Read(%s): error %v, want %s", path, err, want)
		}
	}
	if _, err := atomicfile.Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of nothing: error %v, want fs.ErrNotExist", err)
	}
}
