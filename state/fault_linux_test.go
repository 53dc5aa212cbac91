//go:build amd64 || arm64

package state_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/faultinject"
	"vmctl/spec"
	"vmctl/state"
)

// career opens, changes and closes the state in f three times, and records two starts
// each time. It sets acknowledged to the last start that was recorded without an error,
// and returns the first error.
func career(f dataDir, acknowledged *int) error {
	for run := 1; run <= 3; run++ {
		j, err := f.Open(context.Background(), state.Owner{Command: "vmctl apply"})
		if err != nil {
			return err
		}
		for range 2 {
			r := j.Snapshot().Records[dev]
			r.Kind, r.Starts = spec.VM, *acknowledged+1
			entries := []state.Entry{
				{Run: "r", Kind: state.Begin, Step: r.Starts, Op: "start", Address: dev},
				{Run: "r", Kind: state.Done, Step: r.Starts, Op: "start", Address: dev, Put: &r},
			}
			if err := j.Append(context.Background(), entries...); err != nil {
				return fmt.Errorf("%w, %w", err, closing(j))
			}
			*acknowledged = r.Starts
		}
		if err := j.Close(); err != nil {
			return err
		}
	}
	return nil
}

var errFine = errors.New("closed")

func closing(j state.Journal) error {
	if err := j.Close(); err != nil {
		return err
	}
	return errFine
}

// TestEveryWriteCanFail lets each write to the data directory be the one at which
// the disk is full, the folder cannot be written to any more, or the process ends.
// In each case the error says why, the state loads and has all that was acknowledged,
// and the next run goes on from there.
//
// row E27
func TestEveryWriteCanFail(t *testing.T) {
	always := func(string) bool { return true }
	for _, trouble := range []struct {
		name   string
		errno  syscall.Errno
		fails  func(call string) bool
		advice string // "" where nobody is left to be told
	}{
		{
			"full disk", syscall.ENOSPC,
			func(call string) bool { return call != "flock" && call != "unlinkat" && call != "ftruncate" },
			"free some space there, then run the command again",
		},
		{
			"read-only folder", syscall.EROFS, func(call string) bool { return call != "flock" },
			"make the data directory writable for this user, or choose another with --data-dir",
		},
		{
			"no permission", syscall.EACCES, func(call string) bool { return call == "openat" || call == "renameat" || call == "mkdirat" },
			"make the data directory writable for this user, or choose another with --data-dir",
		},
		{"killed", syscall.EIO, always, ""},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			struck, stride := true, 1
			if testing.Short() {
				stride = 7
			}
			for from := 1; struck; from += stride {
				f := folder(t)
				struck = false
				at, acknowledged := "", 0
				var failed error
				err := faultinject.Run(f.Dir, func(c faultinject.Call) syscall.Errno {
					switch {
					case (c.N < from || !trouble.fails(c.Name)) && c.Name == "fsync":
						return faultinject.Pretended
					case c.N < from || !trouble.fails(c.Name):
						return 0
					}
					if !struck {
						struck, at = true, fmt.Sprintf("call %d, %s %s", c.N, c.Name, strings.TrimPrefix(c.Path, f.Dir+"/"))
					}
					return trouble.errno
				}, func() { failed = career(f, &acknowledged) })
				if err != nil {
					t.Fatal(err)
				}
				if struck != (failed != nil) {
					t.Errorf("%s: the error is %v", at, failed)
				}
				if struck && !strings.Contains(told(failed), trouble.advice) {
					t.Errorf("%s: %v; want it to say: %s", at, failed, trouble.advice)
				}
				survived(t, f, at, acknowledged)
			}
		})
	}
}

// survived checks that a state loads, and that the next run goes on from it.
func survived(t *testing.T, f dataDir, at string, acknowledged int) {
	t.Helper()
	s, err := f.Read(t.Context())
	if err != nil {
		t.Fatalf("%s: read: %v", at, err)
	}
	// The next start may be recorded too, though it was not acknowledged.
	if got := s.Records[dev].Starts; got != acknowledged && got != acknowledged+1 {
		t.Errorf("%s: read start %d, and %d was acknowledged", at, got, acknowledged)
	}
	j, err := f.Open(t.Context(), state.Owner{Command: "vmctl apply"})
	if err != nil {
		t.Fatalf("%s: open: %v", at, err)
	}
	if got := j.Snapshot().Records[dev].Starts; got != s.Records[dev].Starts {
		t.Errorf("%s: opened start %d, and read %d", at, got, s.Records[dev].Starts)
	}
	appendTo(t, j, state.Entry{Run: "s", Kind: state.Note, Op: state.Settled, Address: dev})
	closeIt(t, j)
	for _, name := range names(t, f) {
		switch name {
		case "journal.ndjson.backup", "lock", "state.json", "state.json.backup":
		default:
			t.Errorf("%s: %s is left", at, name)
		}
	}
	if s := read(t, f); len(s.Interrupted) != 0 || len(s.Notes) != 0 {
		t.Errorf("%s: in the end interrupted %s, notes %v", at, interrupted(s), s.Notes)
	}
}

// Repairing can be cut short anywhere, and be done again.
func TestRepairCanBeCutShort(t *testing.T) {
	snapshot, journal := whole(t)
	struck := true
	for from := 1; struck; from++ {
		f := folder(t)
		place(t, f, "state.json", snapshot[:200])
		place(t, f, "state.json.backup", snapshot)
		place(t, f, "journal-1.ndjson", journal)
		struck = false
		err := faultinject.Run(f.Dir, func(c faultinject.Call) syscall.Errno {
			switch {
			case c.N < from && c.Name == "fsync":
				return faultinject.Pretended
			case c.N < from:
				return 0
			}
			struck = true
			return syscall.EIO
		}, func() { _, _ = f.Repair(context.Background(), state.Owner{Command: "vmctl state repair"}) }) //nolint:errcheck // it was killed
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Repair(t.Context(), state.Owner{Command: "vmctl state repair"}); err != nil {
			t.Fatalf("repaired again after %d calls: %v", from-1, err)
		}
		if got := file(t, f, "state.json.corrupt"); got != snapshot[:200] {
			t.Errorf("after %d calls the copy of what was damaged is %q", from-1, got)
		}
		if s := read(t, f); len(s.Records) != 1 || interrupted(s) != "r2/1 delete vm.dev" {
			t.Errorf("after %d calls: %d records, interrupted %s", from-1, len(s.Records), interrupted(s))
		}
		closeIt(t, open(t, f))
		for _, name := range names(t, f) {
			if strings.HasSuffix(name, ".tmp") || strings.HasPrefix(name, "journal-") {
				t.Errorf("after %d calls %s is left", from-1, name)
			}
		}
	}
}

// Without flock there is no way to keep others away, so nothing is begun.
func TestDataDirectoryWithoutLocks(t *testing.T) {
	f := folder(t)
	var opened error
	err := faultinject.Run(f.Dir, func(c faultinject.Call) syscall.Errno {
		if c.Name == "flock" {
			return syscall.EOPNOTSUPP
		}
		return 0
	}, func() { _, opened = f.Open(context.Background(), state.Owner{Command: "vmctl apply"}) })
	if err != nil {
		t.Fatal(err)
	}
	want := "take the run lock: lock " + f.Dir + "/lock: the file system has no file locks (operation not supported): put it on a local disk"
	if d := cmp.Diff(want, fmt.Sprint(opened)); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
}
