//go:build linux && (amd64 || arm64)

package faultinject_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/faultinject"
)

// work changes files in every way that is watched, and stops at the first error.
func work(dir string) error {
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "sub", "a"), []byte("text"), 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "sub", "a"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte("T"), 0)
	return errors.Join(err, f.Truncate(2), f.Chmod(0o400), f.Sync(), syscall.Flock(int(f.Fd()), syscall.LOCK_EX), f.Close(),
		os.Rename(filepath.Join(dir, "sub", "a"), filepath.Join(dir, "b")), os.Remove(filepath.Join(dir, "b")), os.Remove(filepath.Join(dir, "sub")))
}

func TestEveryCallIsSeenAndCanFail(t *testing.T) {
	var seen []string
	dir := t.TempDir()
	var did error
	err := faultinject.Run(dir, func(c faultinject.Call) syscall.Errno {
		seen = append(seen, c.Name+" "+strings.TrimPrefix(c.Path, dir+"/"))
		return 0
	}, func() {
		if did = os.WriteFile(filepath.Join(t.TempDir(), "elsewhere"), nil, 0o600); did == nil {
			did = work(dir)
		}
	})
	if err != nil || did != nil {
		t.Fatal(err, did)
	}
	want := []string{
		"mkdirat sub", "openat sub/a", "write sub/a", "pwrite64 sub/a", "ftruncate sub/a", "fchmod sub/a", "fsync sub/a",
		"flock sub/a", "renameat sub/a", "unlinkat b", "unlinkat sub", "unlinkat sub",
	}
	if d := cmp.Diff(want, seen); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	for n := range want {
		dir := t.TempDir()
		var failed error
		err := faultinject.Run(dir, func(c faultinject.Call) syscall.Errno {
			if c.N == n+1 {
				return syscall.ENOSPC
			}
			return 0
		}, func() { failed = work(dir) })
		if err != nil {
			t.Fatal(err)
		}
		// A folder is removed in two ways, one after the other: the second try comes
		// after any error of the first.
		if n < len(want)-2 && !errors.Is(failed, syscall.ENOSPC) {
			t.Errorf("with %s out of space: %v", want[n], failed)
		}
	}
}
