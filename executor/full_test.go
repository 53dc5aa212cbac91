package executor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/executor"
	"vmctl/state"
)

// cramped is a store on a disk that has room for one more entry at a time.
type cramped struct{ state.Store }

func (c cramped) Open(ctx context.Context, o state.Owner) (state.Journal, error) {
	j, err := c.Store.Open(ctx, o)
	return crampedJournal{j}, err
}

type crampedJournal struct{ state.Journal }

var errFull = errors.New("no space left on device")

func (j crampedJournal) Append(ctx context.Context, entries ...state.Entry) error {
	if len(entries) > 1 {
		return errFull
	}
	return j.Journal.Append(ctx, entries...)
}

// full is a store on a disk that is full for a number of writes, after the first ones.
type full struct {
	state.Store
	fits, fails int
}

func (f *full) Open(ctx context.Context, o state.Owner) (state.Journal, error) {
	j, err := f.Store.Open(ctx, o)
	return &fullJournal{j, f}, err
}

type fullJournal struct {
	state.Journal
	disk *full
}

func (j *fullJournal) Append(ctx context.Context, entries ...state.Entry) error {
	if j.disk.fits > 0 {
		j.disk.fits--
	} else if j.disk.fails > 0 {
		j.disk.fails--
		return errFull
	}
	return j.Journal.Append(ctx, entries...)
}

// No result fits on the disk when the first of two steps ends: it is written with that of the second one.
func TestAResultIsWrittenOnceThereIsRoom(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\nvm \"b\" {}\n")
	store := b.folder
	b.folder = &full{Store: store, fits: 1, fails: 2}
	second := make(chan struct{}) // it ends after the first one could not be written down
	b.memory.hold["define vm.b"] = second
	b.run.Watch = func(e executor.Event) {
		if e.Kind == executor.Halted {
			close(second)
		}
	}
	if summary, err := b.apply(t.Context()); !errors.Is(err, errFull) || len(summary.Done) != 2 {
		t.Fatalf("apply: %+v, %v; want two steps and a full disk", summary, err)
	}
	b.folder = store
	if s := b.snapshot(); len(s.Interrupted) > 0 || len(s.Records) != 2 {
		t.Errorf("interrupted %+v, %d records; want none and 2", s.Interrupted, len(s.Records))
	}
}

// The next begin does not fit on the disk: the result that was to be written with it is not lost.
func TestAResultIsWrittenWithoutTheNextBegin(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	store := b.folder
	b.folder = cramped{store}
	if summary, err := b.apply(t.Context()); !errors.Is(err, errFull) || len(summary.Done) != 1 {
		t.Fatalf("apply: %+v, %v; want one step and a full disk", summary, err)
	}
	b.folder = store
	if s := b.snapshot(); len(s.Interrupted) > 0 {
		t.Errorf("interrupted: %+v; want none", s.Interrupted)
	}
	if diff := cmp.Diff([]string{"start vm.a", "wait_ssh vm.a"}, b.pending()); diff != "" {
		t.Errorf("next plan (-want +got):\n%s", diff)
	}
}
