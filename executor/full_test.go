package executor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

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
