//go:build linux && (amd64 || arm64)

package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/atomicfile"
	"vmctl/internal/faultinject"
)

var tempName = regexp.MustCompile(`\.state\.json\.[0-9]+\.tmp`)

// calls are the system calls of one write of state.json, in their order. at is the
// one that fails; 0: none does.
func calls(t *testing.T, at int) (made []string, path string, wrote error) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "state.json")
	put(t, path, "old")
	err = faultinject.Run(dir, func(c faultinject.Call) syscall.Errno {
		name, err := filepath.Rel(dir, c.Path)
		if err != nil {
			return syscall.EIO
		}
		made = append(made, c.Name+" "+tempName.ReplaceAllString(name, "TEMP"))
		if c.N == at {
			return syscall.EIO
		}
		return 0
	}, func() { wrote = atomicfile.Write(path, []byte("new"), 0o600) })
	if err != nil {
		t.Fatal(err)
	}
	return made, path, wrote
}

// Power may fail at any moment: the content is on the disk before it gets its name, and
// the name before the write is said to be done.
//
// row X12
func TestWriteSyncsTheFileThenItsFolder(t *testing.T) {
	made, _, err := calls(t, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"openat TEMP", "write TEMP", "fchmod TEMP", "fsync TEMP", "renameat TEMP", "fsync ."}
	if d := cmp.Diff(want, made); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}

// Whichever call fails, the old or the new content is there, the error says so, and
// no temporary file is left.
//
// row X12
func TestWriteWithEachCallFailing(t *testing.T) {
	whole, _, err := calls(t, 0)
	if err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= len(whole); at++ {
		_, path, err := calls(t, at)
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("%s failed, and the write says %v", whole[at-1], err)
		}
		want := "old"
		if strings.HasSuffix(whole[at-1], "fsync .") { // the one call after the rename
			want = "new"
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s failed: the file is %q, want %q (%v)", whole[at-1], got, want, err)
		}
		if d := cmp.Diff([]string{"state.json"}, names(t, filepath.Dir(path))); d != "" {
			t.Errorf("%s failed: folder (-want +got):\n%s", whole[at-1], d)
		}
	}
}

// Where there are no hard links a file is created all the same, and one that is there stays.
func TestCreateWithoutLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "new")
	for _, want := range []error{nil, fs.ErrExist} {
		var wrote error
		linked := false
		err := faultinject.Run(dir, func(c faultinject.Call) syscall.Errno {
			if strings.HasPrefix(c.Name, "link") {
				linked = true
				return syscall.EPERM
			}
			return 0
		}, func() { wrote = atomicfile.Create(path, []byte("first"), 0o600) })
		if err != nil || !linked {
			t.Fatalf("no link was tried: %v", err)
		}
		if !errors.Is(wrote, want) || want == nil && wrote != nil {
			t.Errorf("created: %v, want %v", wrote, want)
		}
	}
	if got := text(t, path); got != "first" {
		t.Errorf("it is %q", got)
	}
	if d := cmp.Diff([]string{"new"}, names(t, dir)); d != "" {
		t.Errorf("folder (-want +got):\n%s", d)
	}
}
