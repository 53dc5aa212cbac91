package lockfile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/lockfile"
)

var since = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// owner returns an Owner that is not this process, so that waiting for it makes sense.
func owner(pid int) lockfile.Owner {
	return lockfile.Owner{PID: pid, Host: "ada", Command: "vmctl apply", Since: since}
}

func lockPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "lock")
}

func acquire(t *testing.T, r lockfile.Request) *lockfile.Lock {
	t.Helper()
	l, err := lockfile.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t *testing.T, l *lockfile.Lock) {
	t.Helper()
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

// holder returns the result of Holder as text.
func holder(t *testing.T, path string) string {
	t.Helper()
	o, held, err := lockfile.Holder(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("held %t by %d %s", held, o.PID, o.Command)
}

func TestHeldLockNamesItsHolder(t *testing.T) {
	path := lockPath(t)
	if got := holder(t, path); got != "held false by 0 " {
		t.Errorf("before the first lock: %s", got)
	}
	l := acquire(t, lockfile.Request{Path: path, Owner: owner(1)})
	if got := holder(t, path); got != "held true by 1 vmctl apply" {
		t.Errorf("while held: %s", got)
	}
	_, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: path, Owner: owner(2)})
	var held *lockfile.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("error %v, want a *HeldError", err)
	}
	want := "lock " + path + ": held by vmctl apply (pid 1 on ada) since 2026-03-04T05:06:07Z"
	if d := cmp.Diff(want, err.Error()); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
	if d := cmp.Diff(&lockfile.HeldError{Path: path, Owner: owner(1)}, held); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
	release(t, l)
	if got := holder(t, path); got != "held false by 0 " {
		t.Errorf("after release: %s", got)
	}
}

func TestReleaseKeepsTheFileAndRemovesTheRecord(t *testing.T) {
	path := lockPath(t)
	l := acquire(t, lockfile.Request{Path: path, Owner: owner(1)})
	for _, name := range []string{path, path + ".owner"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", name, info.Mode())
		}
	}
	release(t, l)
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "lock" {
		t.Errorf("folder after release: %v, want only the lock file", entries)
	}
}

func TestWaiterGetsAFreedLock(t *testing.T) {
	path := lockPath(t)
	first := acquire(t, lockfile.Request{Path: path, Owner: owner(1)})
	var told []lockfile.Owner
	second := acquire(t, lockfile.Request{Path: path, Owner: owner(2), Wait: time.Hour, Waiting: func(o lockfile.Owner) {
		told = append(told, o)
		release(t, first)
	}})
	defer release(t, second)
	if d := cmp.Diff([]lockfile.Owner{owner(1)}, told); d != "" {
		t.Errorf("told while waiting (-want +got):\n%s", d)
	}
	if got := holder(t, path); got != "held true by 2 vmctl apply" {
		t.Errorf("afterwards: %s", got)
	}
}

func TestWaitHasADeadline(t *testing.T) {
	path := lockPath(t)
	defer release(t, acquire(t, lockfile.Request{Path: path, Owner: owner(1)}))
	told := 0
	_, err := lockfile.Acquire(t.Context(), lockfile.Request{
		Path: path, Owner: owner(2), Wait: 100 * time.Millisecond, Waiting: func(lockfile.Owner) { told++ },
	})
	var held *lockfile.HeldError
	if !errors.As(err, &held) || told != 1 {
		t.Errorf("error %v, told %d times; want a *HeldError, told once", err, told)
	}
}

func TestEndedContextEndsTheWait(t *testing.T) {
	path := lockPath(t)
	defer release(t, acquire(t, lockfile.Request{Path: path, Owner: owner(1)}))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := lockfile.Acquire(ctx, lockfile.Request{
		Path: path, Owner: owner(2), Wait: time.Hour, Waiting: func(lockfile.Owner) { cancel() },
	})
	want := "lock " + path + ": held by vmctl apply (pid 1 on ada) since 2026-03-04T05:06:07Z: context canceled"
	if !errors.Is(err, context.Canceled) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// row J40
func TestProcessDoesNotWaitForItself(t *testing.T) {
	path := lockPath(t)
	defer release(t, acquire(t, lockfile.Request{Path: path, Owner: owner(1)}))
	_, err := lockfile.Acquire(t.Context(), lockfile.Request{
		Path: path, Owner: owner(1), Wait: time.Hour,
		Waiting: func(lockfile.Owner) { t.Error("waits for itself") },
	})
	var held *lockfile.HeldError
	if !errors.As(err, &held) {
		t.Errorf("error %v, want a *HeldError", err)
	}
}

// A reader that asks for the holder must not look like one.
func TestHolderDisturbsNobody(t *testing.T) {
	path := lockPath(t)
	release(t, acquire(t, lockfile.Request{Path: path, Owner: owner(1)}))
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if _, _, err := lockfile.Holder(t.Context(), path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 300 {
		l, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: path, Owner: owner(1)})
		if err != nil {
			t.Error(err)
			break
		}
		release(t, l)
	}
	stop()
	readers.Wait()
}

func TestHolderWritesNothing(t *testing.T) {
	path := lockPath(t)
	holder(t, path)
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 0 {
		t.Errorf("folder: %v, %v; want it empty", entries, err)
	}
}

func TestReplacedFileIsNotLocked(t *testing.T) {
	path := lockPath(t)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}()
	if !lockfile.IsAt(file, path) {
		t.Error("a file is not at its own path")
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if lockfile.IsAt(file, path) {
		t.Error("a file is still at its path after it was moved away")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if lockfile.IsAt(file, path) {
		t.Error("a file is still at its path after another took its place")
	}
}

func TestLockErrorsSayWhatWasTried(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing", "lock")
	_, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: missing, Owner: owner(1), Wait: time.Hour})
	want := "lock " + missing + ": open " + missing + ": no such file or directory"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	got := lockfile.Unsupported(syscall.ENOTSUP)
	want = "the file system has no file locks (operation not supported): put it on a local disk"
	if got.Error() != want || !errors.Is(got, syscall.ENOTSUP) {
		t.Errorf("error %v, want %s", got, want)
	}
}
