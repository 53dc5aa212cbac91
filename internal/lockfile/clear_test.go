//go:build unix

package lockfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/lockfile"
)

// row A14
func TestClearRemovesWhatADeadHolderLeft(t *testing.T) {
	path := lockPath(t)
	cmd := holding(t, "hold", path)
	_, err := lockfile.Clear(t.Context(), path)
	var held *lockfile.HeldError
	if !errors.As(err, &held) || held.Owner.Command != "child" {
		t.Fatalf("while the holder lives: %v, want a *HeldError that names it", err)
	}
	if _, err := os.Stat(path + ".owner"); err != nil {
		t.Errorf("the record of a live holder: %v", err)
	}
	kill(t, cmd)
	left, err := lockfile.Clear(t.Context(), path)
	if d := cmp.Diff([]lockfile.Owner{held.Owner}, left); err != nil || d != "" {
		t.Errorf("after the kill: %v, left (-want +got):\n%s", err, d)
	}
	if left, err := lockfile.Clear(t.Context(), path); len(left) > 0 || err != nil {
		t.Errorf("again: %+v, %v; want nothing to be there", left, err)
	}
	release(t, acquire(t, lockfile.Request{Path: path, Owner: owner(1)}))
}

func TestClearOfNoLock(t *testing.T) {
	path := lockPath(t)
	_, err := lockfile.Clear(t.Context(), path)
	want := "clear lock " + path + ": lstat " + path + ": no such file or directory"
	if !errors.Is(err, fs.ErrNotExist) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it made the file: %v", err)
	}
}

// Whoever takes the lock while it is being cleared keeps its own record.
//
// row J37
func TestClearNeverTakesARecordAway(t *testing.T) {
	path := lockPath(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 400 {
			l, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: path, Owner: owner(1)})
			if err != nil {
				t.Error(err)
				return
			}
			if o, held, err := lockfile.Holder(t.Context(), path); err != nil || !held || o != owner(1) {
				t.Errorf("while it is held: %+v, %t, %v", o, held, err)
			}
			if err := l.Release(); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for {
		select {
		case <-ended:
			return
		default:
			_, err := lockfile.Clear(t.Context(), path)
			var held *lockfile.HeldError
			if err != nil && !errors.As(err, &held) && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
}

// row J39
func TestReleaseLeavesAnothersRecord(t *testing.T) {
	path := lockPath(t)
	first := acquire(t, lockfile.Request{Path: path, Owner: owner(1)})
	if err := first.Check(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	lost := "lock " + path + ": its file was moved, removed or replaced while this process held it"
	if err := first.Check(); err == nil || err.Error() != lost {
		t.Errorf("after its file was removed: %v, want %s", err, lost)
	}
	second := acquire(t, lockfile.Request{Path: path, Owner: owner(2)})
	var e *lockfile.LostError
	if err := first.Check(); !errors.As(err, &e) || e.Error() != lost+", and vmctl apply (pid 2 on ada) has it now" {
		t.Errorf("after another took it: %v", err)
	}
	release(t, first)
	if got := holder(t, path); got != "held true by 2 vmctl apply" {
		t.Errorf("after the first let go: %s", got)
	}
	if err := second.Check(); err != nil {
		t.Error(err)
	}
	release(t, second)
	if got := holder(t, path); got != "held false by 0 " {
		t.Errorf("in the end: %s", got)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	if all, err := lockfile.Find(filepath.Join(dir, "missing"), nil); err != nil || len(all) != 0 {
		t.Errorf("in a folder that is not there: %v, %v", all, err)
	}
	for _, name := range []string{"busy", "jobs/lock", "jobs/copy"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"lock", "state.json", "busy/vm.dev.owner", "busy/vm.web", "busy/vm.db.seat-0", "busy/vm.db.seat-1", "busy/vm.x.seat-2.owner", "jobs/7.lock", "jobs/copy/yarn.lock", "clock", ".x.owner.1.tmp", "busy/.vm.x.owner.1.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := lockfile.Find(dir, func(path string) bool { return path == filepath.Join(dir, "jobs", "copy") }, filepath.Join(dir, "busy"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"busy/vm.db", "busy/vm.dev", "busy/vm.web", "busy/vm.x", "jobs/7.lock", "lock"} {
		want = append(want, filepath.Join(dir, name))
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Errorf("locks (-want +got):\n%s", d)
	}
}

func TestLookAndClearOfASharedLock(t *testing.T) {
	path := lockPath(t)
	first, second := holding(t, "share", path), holding(t, "share", path)
	state := func() string {
		t.Helper()
		s, err := lockfile.Look(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("held %t, shared %t by", s.Held, s.Shared)
		for _, o := range s.Holders {
			text += fmt.Sprint(" ", o.PID)
		}
		for _, o := range s.Left {
			text += fmt.Sprint(", left ", o.PID)
		}
		return text
	}
	a, b := first.Process.Pid, second.Process.Pid
	if got, want := state(), fmt.Sprintf("held false, shared true by %d %d", a, b); got != want {
		t.Errorf("state %s, want %s", got, want)
	}
	kill(t, first)
	if got, want := state(), fmt.Sprintf("held false, shared true by %d, left %d", b, a); got != want {
		t.Errorf("after one was killed: %s, want %s", got, want)
	}
	var held *lockfile.HeldError
	if _, err := lockfile.Clear(t.Context(), path); !errors.As(err, &held) || held.Owner.PID != b {
		t.Errorf("clearing it while one is left: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: path, Owner: owner(1)})
	if !errors.As(err, &held) || !held.Replaced || held.Owner.PID != b {
		t.Errorf("with its file removed: %v", err)
	}
	kill(t, second)
	left, err := lockfile.Clear(t.Context(), path)
	if err != nil || len(left) != 2 || left[0].PID != a || left[1].PID != b {
		t.Errorf("left %+v, %v; want %d and %d", left, err, a, b)
	}
	if got := state(); got != "held false, shared false by" {
		t.Errorf("in the end: %s", got)
	}
}
