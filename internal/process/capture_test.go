package process_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"vmctl/internal/process"
)

// stages is a process that is seen in one state after the other, and stays in
// the last.
type stages struct {
	fakeSystem
	seen []any // error or process.Facts
	last func()
}

func (s *stages) Look(int) (process.Facts, error) {
	now := s.seen[0]
	if len(s.seen) > 1 {
		s.seen = s.seen[1:]
	} else if s.last != nil {
		s.last()
	}
	if err, ok := now.(error); ok {
		return process.Facts{}, err
	}
	return now.(process.Facts), nil
}

func (s *stages) PIDs() ([]int, error) { return []int{300}, nil }

func at(exe string, argv ...string) process.Facts {
	return process.Facts{Start: 5, Exe: exe, Argv: argv}
}

// Right after its start a process has no command line, or that of whoever
// started it; a script's is its interpreter's in the end.
//
// row J26
// row J27
func TestCaptureWaitsForTheProgram(t *testing.T) {
	python := at("/usr/bin/python3.11", "python3", "/srv/agent", mark)
	env := at("/usr/bin/env", "/usr/bin/env", "python3", "/srv/agent", mark)
	recycled := at("/bin/other", "other")
	recycled.Start = 6
	ending := process.Facts{Start: 5, Ending: true}
	ended := process.Facts{Start: 5, Ended: true}
	secret := process.Facts{Start: 5, Exe: "/bin/a", ArgvErr: fs.ErrPermission}
	for _, c := range []struct {
		name string
		seen []any
		want string
	}{
		{"at once", []any{python}, "/usr/bin/python3.11 python3"},
		{"empty first", []any{at("/bin/sleep"), at("/bin/sleep"), at("/bin/sleep"), at("/bin/sleep", "sleep", "1")}, "/bin/sleep sleep"},
		{"the starter's first", []any{at("/bin/vmctl", "vmctl", "apply"), python}, "/usr/bin/python3.11 python3"},
		{"between two programs", []any{env, at("/usr/bin/python3.11"), python}, "/usr/bin/python3.11 python3"},
		{"a wrapper, for long", []any{env, env, env, env, env, python}, "/usr/bin/python3.11 python3"},
		{"wrappers", []any{at("/usr/bin/nice", "nice", "env"), at("/usr/bin/nice", "nice", "env"), env, env, python}, "/usr/bin/python3.11 python3"},
		{"a wrapper in one file with others", []any{at("/bin/busybox", "env", "a"), at("/bin/busybox", "env", "a"), at("/bin/busybox", "sh", "a")}, "/bin/busybox sh"},
		{"another name at the same time", []any{at("/bin/a", "a"), at("/bin/a", "b"), at("/bin/a", "c")}, "/bin/a c"},
		{"a name that only contains a wrapper's", []any{at("/opt/env/nice-agent", "nice-agent")}, "/opt/env/nice-agent nice-agent"},
		{"replaced while running", []any{at("/bin/a (deleted)", "a")}, "/bin/a a"},
		{"ends", []any{env, ending, ended}, "identify pid 300: it has ended"},
		{"is collected", []any{env, ending, process.ErrNone}, "identify pid 300: it has ended"},
		{"another gets its pid", []any{env, recycled}, "identify pid 300: it has ended, and its pid belongs to another"},
		{"cannot be read", []any{env, fs.ErrPermission}, "identify pid 300: permission denied"},
		{"has a secret command line", []any{secret}, "identify pid 300: permission denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			host := process.NewHost(&stages{seen: c.seen})
			id, err := host.Capture(t.Context(), 300)
			got := id.Exe + " " + id.Argv0
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if _, unread := c.seen[len(c.seen)-1].(error); unread && errors.Is(err, fs.ErrPermission) && errors.Is(err, process.ErrGone) {
				t.Error("what cannot be read was called gone")
			}
		})
	}
}

// A program that never stands is not captured as what it is on the way.
//
// row J26
func TestCaptureGivesUpWithItsContext(t *testing.T) {
	for _, c := range []struct {
		seen []any
		want string
	}{
		{[]any{at(""), at("")}, "identify pid 300: its command line is still empty: context canceled"},
		{[]any{at("/bin/a", "", "x")}, "identify pid 300: its command line is still empty: context canceled"},
		{[]any{at("/bin/a", "a")}, "identify pid 300: its command line may still change: context canceled"},
		{[]any{at("/usr/bin/env", "/usr/bin/env", "x")}, "identify pid 300: it is still /usr/bin/env, which starts another program: context canceled"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		host := process.NewHost(&stages{seen: c.seen, last: cancel})
		_, err := host.Capture(ctx, 300)
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// A process that is between two programs when all are looked at is found too,
// and one that turns out to be another is not.
func TestFindWaitsForTheProgram(t *testing.T) {
	env := at("/usr/bin/env", "/usr/bin/env", "agent", mark)
	for _, c := range []struct {
		name string
		seen []any
		want string
	}{
		{"between two programs", []any{at("/bin/agent"), at("/bin/agent"), at("/bin/agent", "agent", mark)}, "agent"},
		{"a wrapper", []any{env, env, env, at("/bin/agent", "agent", mark)}, "agent"},
		{"another in the end", []any{env, env, at("/bin/agent", "agent", "-mark")}, ""},
		{"ends", []any{env, env, process.Facts{Start: 5, Ended: true}}, ""},
		{"a thread of the kernel", []any{process.Facts{Start: 5, Ending: true}}, ""},
		{"a thread of the kernel, seen by a user", []any{process.Facts{Start: 5, ExeErr: fs.ErrPermission}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := process.NewHost(&stages{seen: c.seen}).Find(t.Context(), process.HasArgument(mark))
			must(t, err)
			got := ""
			for _, id := range found {
				got += id.Argv0
			}
			if got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
