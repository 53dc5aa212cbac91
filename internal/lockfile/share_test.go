package lockfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/lockfile"
)

func share(t *testing.T, path string, pid int) *lockfile.Lock {
	t.Helper()
	l, err := lockfile.Share(t.Context(), lockfile.Request{Path: path, Owner: owner(pid)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// sharers returns the result of Sharers as text.
func sharers(t *testing.T, path string) string {
	t.Helper()
	all, err := lockfile.Sharers(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, o := range all {
		texts = append(texts, fmt.Sprintf("%d %s", o.PID, o.Command))
	}
	return strings.Join(texts, ", ")
}

func TestSharersHoldTogetherAndKeepOthersOut(t *testing.T) {
	path := lockPath(t)
	if got := sharers(t, path); got != "" {
		t.Errorf("before anybody shares it: %s", got)
	}
	first, second := share(t, path, 1), share(t, path, 2)
	if got := sharers(t, path); got != "1 vmctl apply, 2 vmctl apply" {
		t.Errorf("shared by %s", got)
	}
	if got := holder(t, path); got != "held false by 0 " {
		t.Errorf("one holder of what is shared: %s", got)
	}
	_, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: path, Owner: owner(3)})
	var held *lockfile.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("error %v, want a *HeldError", err)
	}
	if d := cmp.Diff(&lockfile.HeldError{Path: path, Owner: owner(1), Sharers: []lockfile.Owner{owner(1), owner(2)}}, held); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
	want := "lock " + path + ": held by vmctl apply (pid 1 on ada) since 2026-03-04T05:06:07Z, and by 1 more"
	if d := cmp.Diff(want, err.Error()); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
	release(t, first)
	if got := sharers(t, path); got != "2 vmctl apply" {
		t.Errorf("after the first left: %s", got)
	}
	release(t, second)
	release(t, acquire(t, lockfile.Request{Path: path, Owner: owner(3)}))
}

func TestNobodySharesWhatOneHoldsAlone(t *testing.T) {
	path := lockPath(t)
	alone := acquire(t, lockfile.Request{Path: path, Owner: owner(1)})
	_, err := lockfile.Share(t.Context(), lockfile.Request{Path: path, Owner: owner(2)})
	var held *lockfile.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("error %v, want a *HeldError", err)
	}
	if d := cmp.Diff(&lockfile.HeldError{Path: path, Owner: owner(1)}, held); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
	if got := sharers(t, path); got != "" {
		t.Errorf("one who was refused is named: %s", got)
	}
	release(t, alone)
	release(t, share(t, path, 2))
}

// A process that wants the lock alone waits for all who share it.
func TestWaiterGetsWhatTheLastSharerLeft(t *testing.T) {
	path := lockPath(t)
	first, second := share(t, path, 1), share(t, path, 2)
	var told []lockfile.Owner
	alone := acquire(t, lockfile.Request{Path: path, Owner: owner(3), Wait: time.Hour, Waiting: func(o lockfile.Owner) {
		told = append(told, o)
		release(t, first)
		release(t, second)
	}})
	if d := cmp.Diff([]lockfile.Owner{owner(1)}, told); d != "" {
		t.Errorf("told while waiting (-want +got):\n%s", d)
	}
	release(t, alone)
}

func TestSharerDoesNotWaitForItself(t *testing.T) {
	path := lockPath(t)
	defer release(t, share(t, path, 1))
	defer release(t, share(t, path, 2))
	_, err := lockfile.Acquire(t.Context(), lockfile.Request{
		Path: path, Owner: owner(2), Wait: time.Hour,
		Waiting: func(lockfile.Owner) { t.Error("waits for itself") },
	})
	var held *lockfile.HeldError
	if !errors.As(err, &held) {
		t.Errorf("error %v, want a *HeldError", err)
	}
}

// The number of seat files is the greatest number of sharers at one time, however many
// came.
func TestSeatsAreTakenAgain(t *testing.T) {
	path := lockPath(t)
	for range 3 {
		first, second := share(t, path, 1), share(t, path, 2)
		release(t, first)
		third := share(t, path, 3)
		if got := sharers(t, path); got != "3 vmctl apply, 2 vmctl apply" {
			t.Errorf("shared by %s", got)
		}
		release(t, second)
		release(t, third)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if d := cmp.Diff([]string{"lock", "lock.seat-0", "lock.seat-1"}, names); d != "" {
		t.Errorf("folder (-want +got):\n%s", d)
	}
}

func TestSharersWriteNothing(t *testing.T) {
	path := lockPath(t)
	sharers(t, path)
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 0 {
		t.Errorf("folder: %v, %v; want it empty", entries, err)
	}
}

func TestShareSaysWhatWasTried(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing", "lock")
	_, err := lockfile.Share(t.Context(), lockfile.Request{Path: missing, Owner: owner(1)})
	want := "lock " + missing + ": open " + missing + ": no such file or directory"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
