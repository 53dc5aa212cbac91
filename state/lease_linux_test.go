//go:build amd64 || arm64

package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"vmctl/internal/faultinject"
	"vmctl/state"
)

// leased takes the lease of a data directory that has a document "a".
func leased(t *testing.T, o state.Owner) (state.Lease, dataDir) {
	t.Helper()
	f := folder(t)
	place(t, f, "a", "old")
	lease, err := f.folder().Lock(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
	})
	return lease, f
}

// leaseWrites are the writes of a lease.
var leaseWrites = map[string]func(state.Lease) error{
	"put":    func(l state.Lease) error { return l.Put("a", []byte("new")) },
	"append": func(l state.Lease) error { return l.Append("journal-1.ndjson", 0, []byte("new")) },
	"rename": func(l state.Lease) error { return l.Rename("a", "b") },
	"remove": func(l state.Lease) error { return l.Remove("a") },
}

// A name that was changed and whose folder cannot be synced is neither written nor not written.
func TestUnsyncedNameIsUncertain(t *testing.T) {
	for _, name := range []string{"put", "rename", "remove"} {
		lease, f := leased(t, state.Owner{})
		changed := false
		var got error
		if err := faultinject.Run(f.Dir, func(c faultinject.Call) syscall.Errno {
			switch {
			case c.Name == "renameat" || c.Name == "unlinkat":
				changed = true
			case c.Name == "fsync" && changed:
				return syscall.EIO
			}
			return 0
		}, func() { got = leaseWrites[name](lease) }); err != nil {
			t.Fatal(err)
		}
		if !changed || !errors.Is(got, state.ErrUncertain) || !errors.Is(got, syscall.EIO) {
			t.Errorf("%s: %v (names changed: %t)", name, got, changed)
		}
	}
}

// A write on a full disk frees the reserved space and is done once more. If there is none, the disk is full.
func TestFullDiskFreesTheReserve(t *testing.T) {
	for _, name := range []string{"put", "append"} {
		for _, reserved := range []bool{true, false} {
			var asked atomic.Int32 // the calls are answered in another goroutine
			lease, f := leased(t, state.Owner{FreeSpace: func() (bool, error) {
				asked.Add(1)
				return reserved, nil
			}})
			var got error
			if err := faultinject.Run(f.Dir, func(c faultinject.Call) syscall.Errno {
				if asked.Load() == 0 && (c.Name == "write" || c.Name == "pwrite64") {
					return syscall.ENOSPC
				}
				return 0
			}, func() { got = leaseWrites[name](lease) }); err != nil {
				t.Fatal(err)
			}
			if n := asked.Load(); n != 1 || reserved != (got == nil) || !reserved && !state.IsFull(got) {
				t.Errorf("%s, reserved space: %t: asked %d times, %v", name, reserved, n, got)
			}
			path := filepath.Join(f.Dir, map[string]string{"put": "a", "append": "journal-1.ndjson"}[name])
			if text, err := os.ReadFile(path); reserved && (err != nil || string(text) != "new") {
				t.Errorf("%s: the document is %q, %v", name, text, err)
			}
		}
	}
}
