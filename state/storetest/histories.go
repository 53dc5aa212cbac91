package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/state"
)

// told returns the records of a snapshot as text, sorted.
func told(s *state.Snapshot) []string {
	var all []string
	for a, r := range s.Records {
		all = append(all, fmt.Sprintf("%s %s started %d", a, r.ID, r.Starts))
	}
	slices.Sort(all)
	return all
}

// trouble says how one write ends.
type trouble string

const (
	fine      trouble = ""
	refused   trouble = "refused"               // it fails, and nothing happens
	noReply   trouble = "its reply is lost"     // it happens, and the process cannot know
	endBefore trouble = "the process ends"      // before it
	endAfter  trouble = "the process ends then" // after it
	endWithin trouble = "the process ends in it"
)

var (
	errRefused = errors.New("refused")
	errEnded   = errors.New("the process has ended")
)

// process is one process that uses the store. Its writes meet the trouble that the history says.
type process struct {
	state.Backend

	world   *world
	name    string
	lease   state.Lease // the real one; nil: it has none
	journal state.Journal
	ended   bool
	// uncertain says that one of its entries may be in the store: it appends no more.
	uncertain bool
	writes    []trouble // of the next writes; none: fine
}

// Lock takes a lease whose writes meet trouble.
func (p *process) Lock(ctx context.Context, o state.Owner) (state.Lease, error) {
	l, err := p.Backend.Lock(ctx, o)
	if err != nil {
		return nil, err
	}
	p.lease = l
	return troubledLease{p}, nil
}

type troubledLease struct{ process *process }

// write does one write, and looks at the store before and after it as others do.
func (l troubledLease) write(do, half func() error) error {
	p := l.process
	if p.ended {
		return errEnded
	}
	p.world.look()
	defer p.world.look()
	next := fine
	if len(p.writes) > 0 {
		next, p.writes = p.writes[0], p.writes[1:]
	}
	switch next {
	case fine:
	case refused:
		return errRefused
	case noReply:
		if err := do(); err != nil {
			return err
		}
		return fmt.Errorf("%w: %s", state.ErrUncertain, next)
	case endBefore, endWithin, endAfter:
		p.ended = true
		if next == endAfter {
			_ = do() //nolint:errcheck // nobody is left to be told
		}
		if next == endWithin && half != nil {
			_ = half() //nolint:errcheck // nobody is left to be told
		}
		return errEnded
	}
	return do()
}

func (l troubledLease) Put(name string, data []byte) error {
	return l.write(func() error { return l.process.lease.Put(name, data) }, nil)
}

func (l troubledLease) Append(name string, size int64, text []byte) error {
	return l.write(
		func() error { return l.process.lease.Append(name, size, text) },
		func() error { return l.process.lease.Append(name, size, text[:len(text)/2]) },
	)
}

func (l troubledLease) Rename(from, to string) error {
	return l.write(func() error { return l.process.lease.Rename(from, to) }, nil)
}

func (l troubledLease) Remove(name string) error {
	return l.write(func() error { return l.process.lease.Remove(name) }, nil)
}

// Release gives the lease back, or leaves it to the end of the process.
func (l troubledLease) Release() error {
	if l.process.ended {
		return errEnded
	}
	err := l.process.lease.Release()
	l.process.lease = nil
	return err
}

// world is a store, the processes that use it, and the entries that it has acknowledged.
type world struct {
	t         TB
	harness   Harness
	processes []*process
	holder    *process // who opened the state last and has not closed it; nil: nobody
	lost      bool     // holder has lost its lease and does not know
	promised  state.Snapshot
	pending   []state.Entry // of an Append that did not return well: they may count or not
	count     int
}

// Histories lets three processes open, append to and close a store in any order, while any write
// may be refused, may lose its reply, or may be the last of its process, and while leases are
// taken away. The laws:
//
//   - what an Append acknowledged is in the store from then on, in the eyes of everybody;
//   - if an Append fails, none of its entries counts, or all do; if the process ends within it, the
//     first entries may count;
//   - after an uncertain write a process appends no more; its entries do not count once it has
//     closed the state;
//   - no two processes have the state open, unless one has lost its lease, and that one changes
//     nothing;
//   - at any moment the state can be read, and after any end it can be opened.
func Histories(t *rapid.T, h Harness) {
	w := &world{t: t, harness: h, promised: *(&state.Snapshot{}).With()}
	for range 3 {
		w.connect()
	}
	t.Repeat(map[string]func(*rapid.T){
		"open":   func(t *rapid.T) { w.open(t, rapid.SampledFrom(w.processes).Draw(t, "process")) },
		"append": w.append,
		"close":  w.close,
		"kill":   w.kill,
		"take":   w.take,
		"":       func(*rapid.T) { w.look() },
	})
	w.finish()
}

// connect adds a process.
func (w *world) connect() {
	w.count++
	w.processes = append(w.processes, &process{Backend: w.harness.Connect(), world: w, name: fmt.Sprint("process ", w.count)})
}

// look reads the state as another process does.
func (w *world) look() {
	s, err := store(w.harness.Connect()).Read(w.t.Context())
	if err != nil {
		w.t.Fatalf("read: %v", err)
	}
	w.compare("read", s)
}

// compare fails unless a snapshot has all acknowledged entries, and of the pending ones none or the
// first.
func (w *world) compare(what string, s *state.Snapshot) {
	got := told(s)
	for n := range len(w.pending) + 1 {
		if cmp.Equal(told(w.promised.With(w.pending[:n]...)), got) {
			return
		}
	}
	w.t.Fatalf("%s, with %d pending entries: (-promised +seen):\n%s", what, len(w.pending), cmp.Diff(told(&w.promised), got))
}

// draw chooses the trouble of the next writes of a process.
func (p *process) draw(t *rapid.T) {
	all := []trouble{fine, refused, noReply, endBefore, endAfter, endWithin}
	p.writes = nil
	if rapid.Bool().Draw(t, "trouble") {
		p.writes = rapid.SliceOfN(rapid.SampledFrom(all), 0, 5).Draw(t, "writes")
	}
}

func (w *world) open(t *rapid.T, p *process) {
	held := w.holder != nil && !w.lost
	if p == w.holder && w.lost {
		t.Skip("it does not know that it lost its lease")
	}
	p.draw(t)
	j, err := store(p).Open(t.Context(), owner())
	var locked *state.LockedError
	switch {
	case held && !errors.As(err, &locked):
		t.Fatalf("%s opened while %s has it open: %v", p.name, w.holder.name, err)
	case held:
		return
	case err == nil:
		s := j.Snapshot()
		w.compare("open", s)
		w.promised, w.pending = *s, nil
		if w.holder != nil { // it lives, and has lost its lease
			w.replace(w.holder)
		}
		p.journal, w.holder, w.lost = j, p, false
	case p.ended:
		w.end(p)
	case !errors.Is(err, errRefused) && !errors.Is(err, state.ErrUncertain):
		t.Fatalf("open by %s: %v", p.name, err)
	}
}

func (w *world) append(t *rapid.T) {
	p := w.holder
	if p == nil {
		t.Skip("nobody has it open")
	}
	var entries []state.Entry
	for range rapid.IntRange(1, 3).Draw(t, "entries") {
		w.count++
		entries = append(entries, started(rapid.SampledFrom(addresses()).Draw(t, "address"), w.count))
	}
	if p.uncertain {
		if p.journal.Append(t.Context(), entries...) == nil {
			t.Fatalf("%s appended after an uncertain write", p.name)
		}
		return
	}
	p.draw(t)
	w.pending = entries
	err := p.journal.Append(t.Context(), entries...)
	var lost *state.LostLockError
	switch {
	case err == nil && w.lost:
		t.Fatalf("%s appended without its lease", p.name)
	case err == nil:
		w.promised, w.pending = *w.promised.With(entries...), nil
	case p.ended:
		w.end(p)
	case errors.Is(err, errRefused) || w.lost && errors.As(err, &lost):
		w.pending = nil
	case errors.Is(err, state.ErrUncertain):
		p.uncertain = true
	default:
		t.Fatalf("append by %s: %v", p.name, err)
	}
	if p.journal != nil {
		if diff := cmp.Diff(told(&w.promised), told(p.journal.Snapshot())); diff != "" {
			t.Fatalf("after an append that returned %v (-promised +seen by its process):\n%s", err, diff)
		}
	}
}

func (w *world) close(t *rapid.T) {
	p := w.holder
	if p == nil {
		t.Skip("nobody has it open")
	}
	p.draw(t)
	err := p.journal.Close()
	var lost *state.LostLockError
	switch {
	case p.ended:
		w.end(p)
	case err == nil, errors.Is(err, errRefused), errors.Is(err, state.ErrUncertain), w.lost && errors.As(err, &lost):
		w.replace(p)
	default:
		t.Fatalf("close by %s: %v", p.name, err)
	}
}

// kill ends the process that has the state open, between two writes.
func (w *world) kill(t *rapid.T) {
	if w.holder == nil {
		t.Skip("nobody has it open")
	}
	w.end(w.holder)
}

// take makes the lease free though its holder lives.
func (w *world) take(t *rapid.T) {
	if w.holder == nil || w.lost {
		t.Skip("nobody has the lease")
	}
	w.harness.Take()
	w.lost = true
}

// end ends a process.
func (w *world) end(p *process) {
	p.ended = true
	if p.lease != nil {
		w.harness.End(p.lease)
	}
	w.replace(p)
}

// replace puts another process in the place of one that is done.
func (w *world) replace(p *process) {
	p.journal = nil
	if w.holder == p {
		w.holder, w.lost = nil, false
	}
	w.processes = slices.DeleteFunc(w.processes, func(other *process) bool { return other == p })
	w.connect()
}

// finish ends everybody, and opens the state once more.
func (w *world) finish() {
	if w.holder != nil {
		w.end(w.holder)
	}
	j, err := store(w.harness.Connect()).Open(w.t.Context(), owner())
	if err != nil {
		w.t.Fatalf("open in the end: %v", err)
	}
	w.compare("open in the end", j.Snapshot())
	must(w.t, j.Close())
	w.look()
}
