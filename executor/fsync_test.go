package executor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"vmctl/state"
)

// counting is a store whose journal notes what each write holds.
type counting struct {
	state.Store
	writes []string
}

func (c *counting) Open(ctx context.Context, o state.Owner) (state.Journal, error) {
	j, err := c.Store.Open(ctx, o)
	return &countingJournal{Journal: j, store: c}, err
}

type countingJournal struct {
	state.Journal
	store *counting
}

// Append takes as long as every running step needs to end.
func (j *countingJournal) Append(ctx context.Context, entries ...state.Entry) error {
	synctest.Wait()
	var words []string
	for _, e := range entries {
		words = append(words, fmt.Sprintf("%s %s %s", e.Kind, e.Op, e.Address))
	}
	j.store.writes = append(j.store.writes, strings.Join(words, ", "))
	return j.Journal.Append(ctx, entries...)
}

// A step's end and the begins of the steps that waited for it share one write and one fsync.
func TestEndsAndBeginsShareOneWrite(t *testing.T) {
	for _, parallelism := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, two)
			b.run.Parallelism = parallelism
			store := &counting{Store: b.folder}
			b.folder = store
			b.must()
			want := []string{
				"begin define vm.a",
				"done define vm.a, begin start vm.a",
				"done start vm.a, begin wait_ssh vm.a",
				"done wait_ssh vm.a, begin define vm.b",
				"done define vm.b, begin start vm.b",
				"done start vm.b, begin wait_ssh vm.b",
				"done wait_ssh vm.b",
			}
			if diff := cmp.Diff(want, store.writes); diff != "" {
				t.Errorf("writes with parallelism %d (-want +got):\n%s", parallelism, diff)
			}
		})
	}
}

// A group of steps that are ready together costs at most two writes, and so two fsyncs, however many they are: DESIGN.md, rule
// 14. Each step of the second group waits for all of the first.
func TestAGroupOfStepsCostsTwoWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const width = 8
		var source, first strings.Builder
		for i := range width {
			fmt.Fprintf(&source, "vm \"a%d\" {\n  running = false\n}\n", i)
			fmt.Fprintf(&first, "vm.a%d, ", i)
		}
		for i := range width {
			fmt.Fprintf(&source, "vm \"b%d\" {\n  running    = false\n  depends_on = [%s]\n}\n", i, first.String())
		}
		b := newBench(t, source.String())
		b.run.Parallelism = width
		store := &counting{Store: b.folder}
		b.folder = store
		b.must()
		const groups = 2
		if n := len(store.writes); n > 2*groups+1 { // the first begins come alone
			t.Errorf("%d groups of %d steps took %d writes, want at most %d:\n%s", groups, width, n, 2*groups+1, strings.Join(store.writes, "\n"))
		}
	})
}
