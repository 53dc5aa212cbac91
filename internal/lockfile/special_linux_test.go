package lockfile_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"vmctl/internal/lockfile"
)

// A pipe or a folder under the name of a lock is an error, and nobody waits.
func TestOnlyRegularFilesAreLocked(t *testing.T) {
	for name, put := range map[string]func(string) error{
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			want := "read " + path + ": it is no regular file: move it aside"
			if _, _, err := lockfile.Holder(t.Context(), path); err == nil || err.Error() != "look at lock "+path+": "+want {
				t.Errorf("Holder: %v", err)
			}
			if _, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: path, Owner: owner(1)}); err == nil || err.Error() != "lock "+path+": "+want {
				t.Errorf("Acquire: %v", err)
			}
			if _, err := lockfile.Share(t.Context(), lockfile.Request{Path: path, Owner: owner(1)}); err == nil || err.Error() != "lock "+path+": "+want {
				t.Errorf("Share: %v", err)
			}
			if _, err := lockfile.Clear(t.Context(), path); err == nil || err.Error() != "clear lock "+path+": "+want {
				t.Errorf("Clear: %v", err)
			}
		})
	}
}

// A pipe in the place of a record is a record that cannot be read.
func TestARecordThatIsAPipe(t *testing.T) {
	path := lockPath(t)
	release(t, acquire(t, lockfile.Request{Path: path, Owner: owner(1), Wait: time.Minute}))
	if err := syscall.Mkfifo(path+".owner", 0o600); err != nil {
		t.Fatal(err)
	}
	if got := holder(t, path); got != "held false by 0 " {
		t.Errorf("Holder: %s", got)
	}
	release(t, acquire(t, lockfile.Request{Path: path, Owner: owner(2), Wait: time.Minute}))
}
