package scratch_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/lockfile"
	"vmctl/internal/scratch"
)

// names lists what is in a folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// A private folder is closed to others where it was open, and is made nowhere else than at its path.
func TestPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		if err := scratch.Private(path); err != nil {
			t.Fatal(err)
		}
		if is, err := os.Stat(path); err != nil || is.Mode().Perm() != 0o700 {
			t.Fatalf("%v, %v", is.Mode(), err)
		}
		if err := os.Chmod(path, 0o777); err != nil { //nolint:gosec // what is to be mended
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := scratch.Private(link); err == nil || !strings.Contains(err.Error(), "is no folder") {
		t.Errorf("a link: %v", err)
	}
}

// A sweep removes what killed processes left, and nothing else.
func TestSweep(t *testing.T) {
	parent, elsewhere := t.TempDir(), t.TempDir()
	for _, path := range []string{"work-killed/sub", "work-killed-early", "work-kept", "work-others", "other-left"} {
		if err := os.MkdirAll(filepath.Join(parent, path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		"work-killed/" + scratch.LockName: "", "work-killed/" + scratch.LockName + ".owner": "{}", "work-killed/sub/file": "text", "work-file": "text", "work-others/file": "text", "work-kept/file": "text",
	} {
		if err := os.WriteFile(filepath.Join(parent, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(parent, "work-link")); err != nil {
		t.Fatal(err)
	}
	mine, err := scratch.Make(t.Context(), parent, "work-live-")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(mine.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(mine.Dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	scratch.Sweep(t.Context(), parent, "work-", func(dir string) bool { return filepath.Base(dir) == "work-kept" })
	want := strings.Join([]string{"other-left", "work-file", "work-kept", "work-link", filepath.Base(mine.Dir), "work-others"}, " ")
	if diff := cmp.Diff(want, names(t, parent)); diff != "" {
		t.Errorf("after a sweep (-want +got):\n%s", diff)
	}
	if got := names(t, elsewhere); got != "" {
		t.Errorf("the sweep followed a link, and left %s behind it", got)
	}
	if got := names(t, mine.Dir); !strings.Contains(got, "file") {
		t.Errorf("the folder of a process that lives has only %s", got)
	}
	if err := mine.Remove(); err != nil {
		t.Error(err)
	}
	if got := names(t, parent); strings.Contains(got, "live") {
		t.Errorf("the removed folder is in %s", got)
	}
	scratch.Sweep(t.Context(), filepath.Join(parent, "none"), "work-", nil) // there is nothing to sweep
}

// A folder that is made while others sweep is there, and locked.
func TestMakeDuringSweeps(t *testing.T) {
	parent := t.TempDir()
	done := make(chan struct{})
	var sweeps sync.WaitGroup
	sweeps.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				scratch.Sweep(t.Context(), parent, "work-", nil)
			}
		}
	})
	for range 50 {
		f, err := scratch.Make(t.Context(), parent, "work-")
		if err != nil {
			t.Error(err)
			break
		}
		if _, held, err := lockfile.Holder(t.Context(), filepath.Join(f.Dir, scratch.LockName)); !held || err != nil {
			t.Errorf("the folder %s is locked: %v, %v", f.Dir, held, err)
		}
		if err := f.Remove(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	sweeps.Wait()
}
