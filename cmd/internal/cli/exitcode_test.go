package cli_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"vmctl/cmd/internal/cli"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/state"
)

func failure(o providers.Outcome) error {
	return &providers.Problem{Outcome: o, Err: errors.New("broken")}
}

// The table of DESIGN.md, section 6, and its precedence.
func TestExitCode(t *testing.T) {
	corrupt := &state.CorruptError{Path: "state.json", Err: errors.New("cut")}
	locked := &state.LockedError{Where: "d"}
	for _, test := range []struct {
		name string
		err  error
		want int
	}{
		{"done", nil, 0},
		{"an internal error", errors.New("broken"), 1},
		{"a contractual step failed", failure(providers.Failed), 1},
		{"a target that contradicts an exclusion", &planner.ScopeError{}, 3},
		{"two blocks of one system", &planner.SystemError{}, 3},
		{"a step's deadline", failure(providers.Timeout), 4},
		{"a deadline", context.DeadlineExceeded, 4},
		{"corrupt", corrupt, 5},
		{"newer", &state.NewerError{}, 5},
		{"of another project", &state.MismatchError{}, 5},
		{"unsafe", failure(providers.Unsafe), 6},
		{"stale", failure(providers.Stale), 6},
		{"locked", locked, 7},
		{"interrupted", context.Canceled, 130},
		{"wrapped", fmt.Errorf("apply: %w", locked), 7},
		{"wrapped and joined", errors.Join(errors.New("a"), fmt.Errorf("b: %w", failure(providers.Timeout))), 4},
		{"130 before 5", errors.Join(corrupt, context.Canceled), 130},
		{"5 before 7", errors.Join(locked, corrupt), 5},
		{"7 before 6", errors.Join(failure(providers.Stale), locked), 7},
		{"6 before 4", errors.Join(failure(providers.Timeout), failure(providers.Unsafe)), 6},
		{"4 before 1", errors.Join(failure(providers.Failed), failure(providers.Timeout)), 4},
	} {
		if got := cli.ExitCode(test.err); got != test.want {
			t.Errorf("%s: %v has code %d, want %d", test.name, test.err, got, test.want)
		}
	}
}

func TestAdviceAfterALostLock(t *testing.T) {
	want := "vmctl lock list -C my/files shows who holds it, then vmctl plan -C my/files"
	if got := strings.Join(cli.AfterLostLock("my/files"), "\n"); got != want {
		t.Errorf("advice %q, want %q", got, want)
	}
}
