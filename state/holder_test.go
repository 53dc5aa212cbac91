package state_test

import (
	"slices"
	"testing"
	"time"

	"vmctl/state"
)

func TestHolderIsNamed(t *testing.T) {
	at := time.Date(2026, 3, 4, 6, 6, 7, 0, time.FixedZone("CET", 3600))
	for _, test := range []struct {
		holder state.Holder
		want   string
	}{
		{state.Holder{PID: 42, Host: "ada", Command: "vmctl apply", Since: at}, "vmctl apply (pid 42 on ada) since 2026-03-04 05:06:07 UTC"},
		{state.Holder{}, "a process that has not said who it is"},
	} {
		if got := test.holder.String(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestHoldersAreOrderedByWhenTheyCame(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 3, 4, 5, 6, second, 0, time.UTC) }
	all := []state.Holder{{PID: 1, Host: "b", Since: at(2)}, {PID: 2, Host: "a", Since: at(2)}, {PID: 1, Host: "a", Since: at(2)}, {PID: 9, Since: at(1)}}
	slices.SortFunc(all, state.Holder.Compare)
	want := []state.Holder{{PID: 9, Since: at(1)}, {PID: 1, Host: "a", Since: at(2)}, {PID: 2, Host: "a", Since: at(2)}, {PID: 1, Host: "b", Since: at(2)}}
	if !slices.Equal(all, want) {
		t.Errorf("order %v, want %v", all, want)
	}
}
