package cli_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"vmctl/cmd/internal/cli"
)

// fifty is the size of a small terminal.
func fifty() (columns, rows int) { return 50, 24 }

func TestWhatATerminalShows(t *testing.T) {
	const escape, arrow = "\x1b[", "→"
	wide := func(s string) bool {
		for line := range strings.Lines(s) {
			if utf8.RuneCountInString(line) > 60 {
				return true
			}
		}
		return false
	}
	for _, test := range []struct {
		name                  string
		terminal              cli.Terminal
		environ, args         []string
		color, unicode, lines bool // lines: longer than 60 characters
	}{
		{"a file", cli.Terminal{}, nil, nil, false, true, true},
		{"a file, with a width", cli.Terminal{}, []string{"COLUMNS=50"}, nil, false, true, false},
		{"a terminal", cli.Terminal{Out: true, Size: fifty}, nil, nil, true, true, false},
		{"a terminal of unknown width", cli.Terminal{Out: true}, nil, nil, true, true, true},
		{"NO_COLOR", cli.Terminal{Out: true, Size: fifty}, []string{"NO_COLOR=1"}, nil, false, true, false},
		{"--no-color", cli.Terminal{Out: true, Size: fifty}, nil, []string{"--no-color"}, false, true, false},
		{"a dumb one", cli.Terminal{Out: true, Size: fifty}, []string{"TERM=dumb"}, nil, false, false, false},
		{"a width that is none", cli.Terminal{Out: true, Size: fifty}, []string{"COLUMNS=x"}, nil, true, true, false},
	} {
		h := newHouse(t, withID+small)
		h.run("apply", "--auto-approve").exits(0)
		h.replace("256MiB", "512MiB")
		h.terminal, h.environ = test.terminal, test.environ
		got := h.run(append([]string{"plan"}, test.args...)...).exits(0).stdout
		if has := strings.Contains(got, escape); has != test.color {
			t.Errorf("%s: color %v, want %v:\n%s", test.name, has, test.color, got)
		}
		if has := strings.Contains(got, arrow); has != test.unicode {
			t.Errorf("%s: an arrow %v, want %v:\n%s", test.name, has, test.unicode, got)
		}
		if has := wide(got); has != test.lines && !test.color {
			t.Errorf("%s: long lines %v, want %v:\n%s", test.name, has, test.lines, got)
		}
	}
}

// Rule 15: what is under way ends, nothing else begins.
func TestAnInterruptEndsAnApplySafely(t *testing.T) {
	h := newHouse(t, withID+small)
	entered, hold := make(chan string, 10), make(chan struct{})
	h.memory.entered, h.memory.hold["start vm.dev"] = entered, hold
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan ending)
	go func() { ended <- h.runIn(ctx, "apply", "--auto-approve") }()
	for op := range entered {
		if op == "start vm.dev" {
			break
		}
	}
	cancel()
	close(hold)
	(<-ended).exits(130).warns("Apply was interrupted: 2 steps done, 1 not run.", "vm.dev wait_ssh", "vmctl apply goes on from here")
	h.acted("define vm.dev", "start vm.dev")
	h.run("plan", "--detailed-exitcode").exits(2).says("it runs, and was never ready since it started")
}
