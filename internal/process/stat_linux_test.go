package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/internal/process"
)

const statTail = " 1 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 "

// row J25
func TestStat(t *testing.T) {
	for _, c := range []struct {
		line string
		want process.Stat
	}{
		{"99 (sleep) S" + statTail + "1 0 4242 1 2 3", process.Stat{PID: 99, PGID: 77, Start: 4242}},
		{"99 (sleep) Z" + statTail + "1 0 4242 1 2 3", process.Stat{PID: 99, PGID: 77, Start: 4242, Ended: true}},
		{"99 (sleep) X" + statTail + "0 0 4242 1 2 3", process.Stat{PID: 99, PGID: 77, Start: 4242, Ended: true}},
		// The first thread has ended, others run.
		{"99 (sleep) Z" + statTail + "2 0 4242 1 2 3", process.Stat{PID: 99, PGID: 77, Start: 4242}},
		{"99 (a) Z 1 1 (b) S" + statTail + "1 0 4242 1 2 3", process.Stat{PID: 99, PGID: 77, Start: 4242}},
		{"99 () D" + statTail + "1 0 18446744073709551615 1 2 3", process.Stat{PID: 99, PGID: 77, Start: 1<<64 - 1}},
	} {
		got, err := process.ParseStat(c.line)
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.line, diff)
		}
	}
	for line, want := range map[string]string{
		"":                  `no line of a process: ""`,
		"99 (sleep) S 1 77": `a line cut short: "99 (sleep) S 1 77"`,
		"99 (sleep) S" + strings.Replace(statTail, "77", "x", 1) + "1 0 4242": `field 5: strconv.Atoi: parsing "x": invalid syntax`,
		"99 (sleep) S" + statTail + "1 0 -1":                                  `field 22: strconv.ParseUint: parsing "-1": invalid syntax`,
	} {
		if _, err := process.ParseStat(line); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", line, err, want)
		}
	}
}

// Whatever a program calls itself, the rest of the line is read the same.
func TestStatOfAnyName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[() Z0-9]{0,15}`)).Draw(t, "name")
		got, err := process.ParseStat("99 (" + name + ") S" + statTail + "1 0 4242 1 2 3\n")
		if want := (process.Stat{PID: 99, PGID: 77, Start: 4242}); err != nil || got != want {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	})
}

// A program chooses the name that the kernel shows: none passes for ended.
func TestHostileName(t *testing.T) {
	stage := newStage(t)
	path := filepath.Join(t.TempDir(), "a) Z 1 1 (b")
	must(t, os.Symlink(self(t), path))
	child := start(t, process.Command{Path: path, Env: append(os.Environ(), role+"=deaf"), Stdin: stage.in, Stdout: stage.out})
	stage.listen(t, "deaf")
	id, err := child.Capture(t.Context())
	must(t, err)
	if id.PGID != id.PID || id.Argv0 != path {
		t.Errorf("captured %+v", id)
	}
	verify(t, process.Host{}, id, process.Match)
}
