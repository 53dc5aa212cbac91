// Package storetest has the tests that a state.Backend must pass, whatever keeps the documents.
package storetest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/spec"
	"vmctl/state"
)

// TB is a test, or a case of a search.
type TB interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
}

// Harness is one empty store that several processes use.
type Harness struct {
	// Connect returns the store as another process sees it.
	Connect func() state.Backend
	// End ends the process that has a lease, as a kill does: the lease becomes free, and nothing is
	// tidied.
	End func(state.Lease)
	// Take makes the lease free though its holder lives and does not know: its lock file was
	// removed, or it was out of reach for too long.
	Take func()
}

// Run runs every test. New makes a store for each test and for each case of the search.
func Run(t *testing.T, newHarness func(*testing.T) Harness) {
	for name, test := range map[string]func(TB, Harness){
		"documents": Documents, "lease": Lease, "lost lease": LostLease, "repair": Repair, "read beside a writer": ReadBeside,
	} {
		t.Run(name, func(t *testing.T) { test(t, newHarness(t)) })
	}
	t.Run("histories", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) { Histories(rt, newHarness(t)) })
	})
}

// store returns the store behind a backend, of the project of these tests.
func store(b state.Backend) state.Store {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	return state.NewStore(b, state.Config{ID: "k7m2qd9x4r", Project: "example", Version: "0.1.0", Now: func() time.Time { return now }})
}

const command = "vmctl apply"

func owner() state.Owner { return state.Owner{Command: command} }

func must(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func lock(t TB, b state.Backend) state.Lease {
	t.Helper()
	l, err := b.Lock(t.Context(), owner())
	must(t, err)
	return l
}

// get returns a document as text; "-": it does not exist.
func get(t TB, b state.Backend, name string) string {
	t.Helper()
	data, err := b.Get(t.Context(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	must(t, err)
	return string(data)
}

// Documents tests the writes of a lease, each as another process sees it.
func Documents(t TB, h Harness) {
	other := h.Connect()
	mine := lock(t, h.Connect())
	for _, write := range []struct {
		what string
		do   func() error
		want [2]string // the documents a and b afterwards
		fail bool
	}{
		{"nothing", func() error { return nil }, [2]string{"-", "-"}, false},
		{"remove a document that does not exist", func() error { return mine.Remove("a") }, [2]string{"-", "-"}, false},
		{"put", func() error { return mine.Put("a", []byte("one")) }, [2]string{"one", "-"}, false},
		{"replace by something shorter", func() error { return mine.Put("a", []byte("I")) }, [2]string{"I", "-"}, false},
		{"append to nothing", func() error { return mine.Append("b", 0, []byte("x\n")) }, [2]string{"I", "x\n"}, false},
		{"append", func() error { return mine.Append("b", 2, []byte("y\n")) }, [2]string{"I", "x\ny\n"}, false},
		{"begin a document that exists", func() error { return mine.Append("a", 0, []byte("z")) }, [2]string{"I", "x\ny\n"}, true},
		{"rename over another", func() error { return mine.Rename("b", "a") }, [2]string{"x\ny\n", "-"}, false},
		{"put nothing", func() error { return mine.Put("b", nil) }, [2]string{"x\ny\n", ""}, false},
		{"remove", func() error { return mine.Remove("a") }, [2]string{"-", ""}, false},
	} {
		if err := write.do(); (err != nil) != write.fail {
			t.Fatalf("%s: %v", write.what, err)
		}
		if got := [2]string{get(t, other, "a"), get(t, other, "b")}; got != write.want {
			t.Fatalf("%s: documents a and b are %q, want %q", write.what, got, write.want)
		}
	}
	names, err := other.List(t.Context())
	must(t, err)
	if slices.Contains(names, "a") || !slices.Contains(names, "b") {
		t.Fatalf("documents %q, want b and not a", names)
	}
	must(t, mine.Release())
}

// Lease tests that one process at a time has the lease, and that others see who.
func Lease(t TB, h Harness) {
	holder, err := h.Connect().Holder(t.Context())
	if must(t, err); holder != nil {
		t.Fatalf("a lease that nobody took is held by %v", holder)
	}
	mine := lock(t, h.Connect())
	holder, err = h.Connect().Holder(t.Context())
	if must(t, err); holder == nil || holder.Command != command {
		t.Fatalf("the holder is %v, want %s", holder, command)
	}
	var locked *state.LockedError
	if _, err := h.Connect().Lock(t.Context(), owner()); !errors.As(err, &locked) || locked.Holder != *holder {
		t.Fatalf("a second process gets %v, want a *state.LockedError with the holder %v", err, holder)
	}
	must(t, mine.Release())
	if holder, err = h.Connect().Holder(t.Context()); err != nil || holder != nil {
		t.Fatalf("a lease that was given back is held by %v, %v", holder, err)
	}
	h.End(lock(t, h.Connect()))
	must(t, lock(t, h.Connect()).Release())
}

// LostLease tests that a process without its lease cannot write any more.
func LostLease(t TB, h Harness) {
	old := lock(t, h.Connect())
	must(t, old.Put("a", []byte("one")))
	must(t, old.Append("b", 0, []byte("x\n")))
	h.Take()
	mine := lock(t, h.Connect())
	must(t, mine.Put("a", []byte("two")))
	for what, err := range map[string]error{
		"put": old.Put("a", []byte("late")), "append": old.Append("b", 2, []byte("late")),
		"rename": old.Rename("b", "a"), "remove": old.Remove("a"),
	} {
		var lost *state.LostLockError
		if !errors.As(err, &lost) {
			t.Fatalf("%s without the lease: %v, want a *state.LostLockError", what, err)
		}
	}
	other := h.Connect()
	if got := [2]string{get(t, other, "a"), get(t, other, "b")}; got != [2]string{"two", "x\n"} {
		t.Fatalf("documents a and b are %q, want what the present holder wrote", got)
	}
	_ = old.Release() //nolint:errcheck // its lease is gone, whatever it says
	if holder, err := other.Holder(t.Context()); err != nil || holder == nil {
		t.Fatalf("a process that had lost its lease released the lease of another one: %v, %v", holder, err)
	}
	must(t, mine.Release())
}

// Repair tests that a repair brings back what was acknowledged, whichever part of the snapshot is
// damaged, and that a diagnosis changes nothing.
func Repair(t TB, h Harness) {
	s := store(h.Connect())
	var want []string
	for n := range 3 {
		j, err := s.Open(t.Context(), owner())
		must(t, err)
		must(t, j.Append(t.Context(), started(addresses()[n%2], n+1)))
		must(t, j.Close())
		snapshot, err := s.Read(t.Context())
		must(t, err)
		want = told(snapshot)
	}
	whole := get(t, h.Connect(), "state.json")
	for what, damaged := range map[string]string{"nothing": "", "half": whole[:len(whole)/2], "changed": whole[:len(whole)-3] + " " + whole[len(whole)-3:]} {
		l := lock(t, h.Connect())
		must(t, l.Put("state.json", []byte(damaged)))
		must(t, l.Release())
		var corrupt *state.CorruptError
		if _, err := s.Read(t.Context()); !errors.As(err, &corrupt) || corrupt.Backup == "" {
			t.Fatalf("%s of the snapshot: %v, want a *state.CorruptError with a backup", what, err)
		}
		would, err := s.Diagnose(t.Context())
		must(t, err)
		if got := get(t, h.Connect(), "state.json"); got != damaged || len(would.Damage) == 0 {
			t.Fatalf("%s of the snapshot: the diagnosis is %+v, and the document %q", what, would, got)
		}
		did, err := s.Repair(t.Context(), owner())
		if must(t, err); !cmp.Equal(would, did) {
			t.Fatalf("%s of the snapshot: said %+v, did %+v", what, would, did)
		}
		after, err := s.Read(t.Context())
		must(t, err)
		if diff := cmp.Diff(want, told(after)); diff != "" {
			t.Fatalf("%s of the snapshot: after the repair (-acknowledged +read):\n%s", what, diff)
		}
		// It is damaged once more, before anybody wrote it.
		l = lock(t, h.Connect())
		must(t, l.Put("state.json", []byte(damaged)))
		must(t, l.Release())
		_, err = s.Repair(t.Context(), owner())
		must(t, err)
		after, err = s.Read(t.Context())
		must(t, err)
		if diff := cmp.Diff(want, told(after)); diff != "" {
			t.Fatalf("%s of the snapshot: after the second repair (-acknowledged +read):\n%s", what, diff)
		}
		// The next snapshot has a backup and a journal again.
		j, err := s.Open(t.Context(), owner())
		must(t, err)
		must(t, j.Append(t.Context(), started(addresses()[0], 9)))
		must(t, j.Close())
		after, err = s.Read(t.Context())
		must(t, err)
		want = told(after)
	}
}

// ReadBeside tests that a process reads the state of one moment, whatever another one writes
// between any two of its looks.
func ReadBeside(t TB, h Harness) {
	s := store(h.Connect())
	for look := range 12 {
		j, err := s.Open(t.Context(), owner())
		must(t, err)
		must(t, j.Append(t.Context(), started(addresses()[0], 2*look)))
		reader := &interrupted{Backend: h.Connect(), looks: look % 6, write: func() {
			if look < 6 {
				must(t, j.Append(t.Context(), started(addresses()[1], look)))
			}
			must(t, j.Close())
			j, err = s.Open(t.Context(), owner())
			must(t, err)
			must(t, j.Append(t.Context(), started(addresses()[0], 2*look+1)))
		}}
		before := told(j.Snapshot())
		seen, err := store(reader).Read(t.Context())
		must(t, err)
		must(t, j.Close())
		after, err := s.Read(t.Context())
		must(t, err)
		if got := told(seen); !cmp.Equal(got, before) && !cmp.Equal(got, told(after)) {
			t.Fatalf("read beside a writer, at look %d: %q; before %q, after %q", look, got, before, told(after))
		}
	}
}

// interrupted is a backend whose store another process writes after a number of looks.
type interrupted struct {
	state.Backend

	looks int
	write func()
}

func (b *interrupted) look() {
	if b.looks == 0 {
		b.write()
	}
	b.looks--
}

// Get looks at a document.
func (b *interrupted) Get(ctx context.Context, name string) ([]byte, error) {
	b.look()
	return b.Backend.Get(ctx, name)
}

// List looks at the names.
func (b *interrupted) List(ctx context.Context) ([]string, error) {
	b.look()
	return b.Backend.List(ctx)
}

func addresses() []spec.Address {
	return []spec.Address{{Kind: spec.VM, Name: "a"}, {Kind: spec.VM, Name: "b"}, {Kind: spec.Disk, Name: "c"}}
}

// started returns an entry for an object that was started so many times.
func started(a spec.Address, times int) state.Entry {
	r := state.Record{
		Kind: a.Kind, Provider: spec.ProviderRef{Type: "sim", Name: "default"}, ID: "id of " + a.Name, Name: a.Name, Starts: times,
	}
	return state.Entry{Run: "r", Step: times, Kind: state.Done, Op: "start", Address: a, Put: &r}
}
