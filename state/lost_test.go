package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vmctl/internal/lockfile"
	"vmctl/state"
)

// A journal whose lock file is gone writes nothing more: not what is about to be
// done, not what was done, and not the state.
func TestLostLock(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	r := record("dev", 1)
	appendTo(t, j, state.Entry{Run: "r1", Kind: state.Done, Op: "define", Address: dev, Put: &r})
	closeIt(t, j)
	j = open(t, f)
	appendTo(t, j, state.Entry{Run: "r2", Kind: state.Begin, Op: "stop", Address: dev})
	path := filepath.Join(f.Dir, "lock")
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	lost := "the run lock is lost: " + path + " was moved, removed or replaced meanwhile, and "
	nobody := lost + "another command may be at work; nothing more is written"
	refused := func(what string, err error, want string) {
		t.Helper()
		var e *state.LostLockError
		if !errors.As(err, &e) || told(err) != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	refused("append", j.Append(t.Context(), state.Entry{Run: "r2", Kind: state.Done, Op: "stop", Address: dev}), "write the journal: "+nobody)

	// Its record went too: nobody can see that the old file is held.
	if err := os.Remove(path + ".owner"); err != nil {
		t.Fatal(err)
	}
	other := lockfile.Owner{PID: 7, Host: "ada", Command: "vmctl destroy", Since: f.Now()}
	l, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: path, Owner: other})
	if err != nil {
		t.Fatal(err)
	}
	somebody := lost + `"vmctl destroy" (pid 7 on ada) has it now; nothing more is written`
	refused("append beside another", j.Append(t.Context(), state.Entry{Run: "r2", Kind: state.Done, Op: "stop", Address: dev}), "write the journal: "+somebody)
	refused("close beside another", j.Close(), "close the state: "+somebody)
	if o, held, err := lockfile.Holder(t.Context(), path); !held || o != other || err != nil {
		t.Errorf("the other's lock is held %t by %+v, %v", held, o, err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if s := read(t, f); s.Serial != 1 || interrupted(s) != "r2/0 stop vm.dev" {
		t.Errorf("serial %d, interrupted %s; want what was before the lock was lost", s.Serial, interrupted(s))
	}
	closeIt(t, open(t, f))
}
