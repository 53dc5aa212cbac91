//go:build linux

package acceptance_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// operation is something that vmctl does to a world, and may be killed at.
type operation struct {
	name   string
	before string           // the spec of the world that it begins with; "": nothing was applied yet
	damage func(*crashSite) // done to that world behind vmctl's back; may be nil
	spec   string           // the spec that it is run with
	args   []string         // of vmctl; nil: apply
	again  []string         // of vmctl, to go on after a kill; nil: apply
	once   bool             // what runs in the end was started by it, and once
	renews bool             // it makes another object, whose ID counts replacements: cut short, it may be a first one
}

func (o operation) command() []string {
	if o.args != nil {
		return o.args
	}
	return []string{"apply", "--auto-approve", "--parallelism=1"}
}

func (o operation) recovery() []string {
	if o.again != nil {
		return o.again
	}
	return []string{"apply", "--auto-approve"}
}

// TestCrashMatrix kills vmctl at each of its mutations: before every write to a
// file, before every request to another program, before every start and every
// signal. Whatever was cut short, the next plan has to say so, and at most two
// further applies have to end in the world of a run that was not killed: nothing
// lost, nothing leaked, nothing twice.
//
// make crash-matrix (VMCTL_CRASH_MATRIX=all) tries every kill point, make test
// one of several; any other VMCTL_CRASH_MATRIX is a pattern of those to try.
//
// row X11
func TestCrashMatrix(t *testing.T) {
	var table crashTable
	t.Run("sim", func(t *testing.T) {
		for _, o := range simOperations {
			t.Run(o.name, func(t *testing.T) {
				t.Parallel()
				table.add(crash(t, "sim", o, 8))
			})
		}
	})
	t.Run("qemu", func(t *testing.T) {
		for _, o := range qemuOperations {
			t.Run(o.name, func(t *testing.T) {
				t.Parallel()
				table.add(crash(t, "qemu", o, 48))
			})
		}
	})
	t.Log("\n" + table.String())
	if table.killed() == 0 {
		t.Error("nothing was killed: no operation has such a kill point")
	}
}

// crashRow says what came of killing one operation at each of its kill points.
type crashRow struct {
	system, operation              string
	points, killed                 int // tried, and reached: a run may be over before a point that depends on time
	interrupted                    int // kills that the next plan found in the journal
	lost, leaked, duplicated, rest int // kills after which something was; rest: that did not converge, or were not told
}

type crashTable struct {
	mu   sync.Mutex
	rows []crashRow
}

func (c *crashTable) add(r crashRow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, r)
}

// killed returns the number of runs that were killed.
func (c *crashTable) killed() int {
	sum := 0
	for _, r := range c.rows {
		sum += r.killed
	}
	return sum
}

// String is the table with its sums.
func (c *crashTable) String() string {
	slices.SortFunc(c.rows, func(a, b crashRow) int {
		return strings.Compare(a.system+"\x00"+a.operation, b.system+"\x00"+b.operation)
	})
	var text strings.Builder
	line := func(r crashRow) {
		fmt.Fprintf(&text, "%-6s %-34s %6d %6d %11d %5d %6d %10d %13d\n", r.system, r.operation, r.points, r.killed, r.interrupted,
			r.lost, r.leaked, r.duplicated, r.rest)
	}
	fmt.Fprintf(&text, "%-6s %-34s %6s %6s %11s %5s %6s %10s %13s\n", "system", "operation", "points", "killed", "interrupted", "lost", "leaked", "duplicated", "not converged")
	sum := crashRow{system: "all"}
	for _, r := range c.rows {
		line(r)
		sum.points, sum.killed, sum.interrupted = sum.points+r.points, sum.killed+r.killed, sum.interrupted+r.interrupted
		sum.lost, sum.leaked, sum.duplicated, sum.rest = sum.lost+r.lost, sum.leaked+r.leaked, sum.duplicated+r.duplicated, sum.rest+r.rest
	}
	line(sum)
	return text.String()
}

// crash runs an operation once to its end, and then once for each kill point, or
// for one of every so many.
func crash(t *testing.T, system string, o operation, every int) crashRow {
	whole := newCrashSite(t, o.name)
	points := whole.run(o, nil).Mutations
	want := whole.converge(o)
	whole.close()
	row := crashRow{system: system, operation: o.name}
	if len(points) == 0 {
		t.Fatal("the operation changes nothing")
	}
	every = min(every, len(points))
	chosen := func(i int, _ mutation) bool { return i%every == len(o.name)%every } // operations have points in common
	which := os.Getenv("VMCTL_CRASH_MATRIX")
	switch which {
	case "":
	case "all":
		chosen = func(int, mutation) bool { return true }
	default:
		pattern := regexp.MustCompile(which)
		chosen = func(_ int, m mutation) bool { return pattern.MatchString(m.String()) }
	}
	for i, point := range points {
		if !chosen(i, point) {
			continue
		}
		row.points++
		cut := newCrashSite(t, fmt.Sprintf("%s, killed before %s", o.name, point))
		if x := cut.run(o, &point); x.Killed {
			row.killed++
			if cut.interrupted() {
				row.interrupted++
			}
		}
		got := cut.converge(o)
		if o.once {
			cut.startedOnce()
		}
		row.judge(cut, want, got)
		cut.close()
	}
	if (which == "" || which == "all") && row.killed == 0 {
		t.Errorf("of %d kill points, %d were tried and none was reached", len(points), row.points)
	}
	return row
}

// judge compares the world after a kill with that of a run that was not killed.
func (r *crashRow) judge(s *crashSite, want, got map[string]int) {
	var lost, leaked, duplicated []string
	for _, thing := range slices.Sorted(maps.Keys(want)) {
		if got[thing] < want[thing] {
			lost = append(lost, thing)
		}
	}
	for _, thing := range slices.Sorted(maps.Keys(got)) {
		switch {
		case got[thing] > want[thing] && want[thing] > 0:
			duplicated = append(duplicated, thing)
		case got[thing] > want[thing]:
			leaked = append(leaked, thing)
		}
	}
	for _, found := range []struct {
		word   string
		things []string
		count  *int
	}{{"lost", lost, &r.lost}, {"leaked", leaked, &r.leaked}, {"twice", duplicated, &r.duplicated}} {
		if len(found.things) > 0 {
			*found.count++
			s.errorf("%s: %s", found.word, strings.Join(found.things, ", "))
		}
	}
	if s.failed && len(lost)+len(leaked)+len(duplicated) == 0 {
		r.rest++
	}
}

// write puts the spec of a site.
func (s *crashSite) write(spec string) {
	const head = "vmctl {\n  project = \"demo\"\n  id      = \"k7m2qd9x4r\"\n}\n"
	if err := os.WriteFile(filepath.Join(s.dir, "main.vmctl.hcl"), []byte(head+spec), 0o644); err != nil { //nolint:gosec // the test's user reads it
		s.t.Fatal(err)
	}
}
