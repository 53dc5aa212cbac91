//go:build linux

package acceptance_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	engine bool             // its VM has a container engine inside, at the socket @HOME/e
	boxes  bool             // it is run by the vmctl that knows boxes
	boots  bool             // a guest boots for each kill point, which takes a minute
	repo   bool             // it is about workspaces of a repository, whose programs are kill points each
	renews bool             // it makes another object, whose ID counts replacements: cut short, it may be a first one
}

// program returns the path of the vmctl that runs it.
func (o operation) program() string {
	if o.boxes {
		return shared.boxed
	}
	return shared.vmctl
}

// repeats limits the kill points at mutations that are alike between one journal write and the next: polling and uploads
// repeat themselves, and the programs that work on a repository are all alike to the tracer.
func (o operation) repeats() int {
	if o.repo {
		return 40
	}
	return 2
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
// one of several, other ones after each commit, and none of what boots a guest for each; any other VMCTL_CRASH_MATRIX is a pattern of those to try.
// VMCTL_CRASH_SHARD=2/5 tries the second fifth of them, and VMCTL_CRASH_ROWS names
// a folder in which the rows of all shards become one table.
//
// row X11
func TestCrashMatrix(t *testing.T) {
	var table crashTable
	t.Run("sim", func(t *testing.T) {
		for _, o := range simOperations {
			t.Run(o.name, func(t *testing.T) {
				t.Parallel()
				table.add(crash(t, "sim", o, 24))
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
	t.Run("lima", func(t *testing.T) {
		for _, o := range limaOperations {
			if o.boots && os.Getenv("VMCTL_CRASH_MATRIX") == "" {
				continue
			}
			t.Run(o.name, func(t *testing.T) {
				t.Parallel()
				table.add(crash(t, "lima", o, 24))
			})
		}
	})
	if err := table.share(os.Getenv("VMCTL_CRASH_ROWS"), os.Getenv("VMCTL_CRASH_SHARD")); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	if table.killed() == 0 {
		t.Error("nothing was killed: no operation has such a kill point")
	}
}

// crashRow says what came of killing one operation at each of its kill points.
type crashRow struct {
	System, Operation              string
	Points, Killed                 int // tried, and reached: a run may be over before a point that depends on time
	Interrupted                    int // kills that the next plan found in the journal
	Lost, Leaked, Duplicated, Rest int // kills after which something was; rest: that did not converge, or were not told
}

// plus adds the kills of another shard of the same operation.
func (r crashRow) plus(o crashRow) crashRow {
	r.Points, r.Killed, r.Interrupted = r.Points+o.Points, r.Killed+o.Killed, r.Interrupted+o.Interrupted
	r.Lost, r.Leaked, r.Duplicated, r.Rest = r.Lost+o.Lost, r.Leaked+o.Leaked, r.Duplicated+o.Duplicated, r.Rest+o.Rest
	return r
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
		sum += r.Killed
	}
	return sum
}

// share writes the rows of a shard into a folder, and adds those that are there of the other
// shards of as many.
func (c *crashTable) share(folder, shard string) error {
	if folder == "" {
		return nil
	}
	_, of, _ := strings.Cut(shard, "/")
	text, err := json.Marshal(c.rows)
	if err == nil {
		err = os.MkdirAll(folder, 0o750)
	}
	name := filepath.Join(folder, strings.ReplaceAll(cmp.Or(shard, "1/1"), "/", "-of-")+".json")
	if err == nil {
		err = os.WriteFile(name, text, 0o600)
	}
	if err != nil {
		return err
	}
	others, err := filepath.Glob(filepath.Join(folder, "*-of-"+cmp.Or(of, "1")+".json"))
	if err != nil {
		return err
	}
	for _, other := range others {
		if other == name {
			continue
		}
		var rows []crashRow
		text, err := os.ReadFile(other)
		if err == nil {
			err = json.Unmarshal(text, &rows)
		}
		if err != nil {
			return fmt.Errorf("read the rows of another shard: %w", err)
		}
		for _, r := range rows {
			c.merge(r)
		}
	}
	return nil
}

func (c *crashTable) merge(r crashRow) {
	i := slices.IndexFunc(c.rows, func(o crashRow) bool { return o.System == r.System && o.Operation == r.Operation })
	if i < 0 {
		c.rows = append(c.rows, r)
		return
	}
	c.rows[i] = c.rows[i].plus(r)
}

// shardOf reads "2/5": the second of five shards is 1, 5. "" is all of them.
func shardOf(t *testing.T, text string) (shard, of int) {
	t.Helper()
	if text == "" {
		return 0, 1
	}
	if n, err := fmt.Sscanf(text, "%d/%d", &shard, &of); n != 2 || err != nil || shard < 1 || shard > of {
		t.Fatalf("VMCTL_CRASH_SHARD=%s: write for example 2/5", text)
	}
	return shard - 1, of
}

// String is the table with its sums.
func (c *crashTable) String() string {
	slices.SortFunc(c.rows, func(a, b crashRow) int {
		return strings.Compare(a.System+"\x00"+a.Operation, b.System+"\x00"+b.Operation)
	})
	var text strings.Builder
	line := func(r crashRow) {
		fmt.Fprintf(&text, "%-6s %-34s %6d %6d %11d %5d %6d %10d %13d\n", r.System, r.Operation, r.Points, r.Killed, r.Interrupted,
			r.Lost, r.Leaked, r.Duplicated, r.Rest)
	}
	fmt.Fprintf(&text, "%-6s %-34s %6s %6s %11s %5s %6s %10s %13s\n", "system", "operation", "points", "killed", "interrupted", "lost", "leaked", "duplicated", "not converged")
	sum := crashRow{System: "all"}
	for _, r := range c.rows {
		line(r)
		sum = sum.plus(r)
	}
	line(sum)
	return text.String()
}

// crash runs an operation once to its end, and then once for each kill point, or
// for one of every so many.
func crash(t *testing.T, system string, o operation, every int) crashRow {
	whole := newCrashSite(t, o, o.name)
	points := whole.run(o, nil).Mutations
	want := whole.converge(o)
	whole.close()
	row := crashRow{System: system, Operation: o.name}
	if len(points) == 0 {
		t.Fatal("the operation changes nothing")
	}
	try := func(point mutation) {
		row.Points++
		cut := newCrashSite(t, o, fmt.Sprintf("%s, killed before %s", o.name, point))
		if x := cut.run(o, &point); x.Killed {
			row.Killed++
			if cut.interrupted() {
				row.Interrupted++
			}
		}
		got := cut.converge(o)
		if o.once {
			cut.startedOnce()
		}
		row.judge(cut, want, got)
		cut.close()
	}
	which := os.Getenv("VMCTL_CRASH_MATRIX")
	if which == "" {
		// A run may be over before a point that depends on time, so that a sample ends with a point that was reached.
		rest := sample(points, every, crashShift(t)+len(o.name)) // operations have points in common
		for n := (len(points) + every - 1) / every; len(rest) > 0 && (n > 0 || row.Killed == 0); n-- {
			try(rest[0])
			rest = rest[1:]
		}
	} else {
		chosen := regexp.MustCompile(which)
		shard, of := shardOf(t, os.Getenv("VMCTL_CRASH_SHARD"))
		for i, point := range points {
			if (which == "all" || chosen.MatchString(point.String())) && (i+len(o.name))%of == shard {
				try(point)
			}
		}
	}
	if (which == "" || which == "all") && row.Points > 0 && row.Killed == 0 {
		t.Errorf("of %d kill points, %d were tried and none was reached", len(points), row.Points)
	}
	return row
}

// sample returns all points in the order in which a sample takes them: each one that many further than the one before, the
// first one by the shift.
func sample(points []mutation, every, shift int) []mutation {
	var all []mutation
	for first := range every {
		for i := (first + shift) % every; i < len(points); i += every {
			all = append(all, points[i])
		}
	}
	return all
}

// crashShift returns the number that moves the sample: VMCTL_CRASH_SHIFT, which make sets to the number of commits, so that
// every kill point gets its turn and each run can be repeated.
func crashShift(t *testing.T) int {
	t.Helper()
	text := os.Getenv("VMCTL_CRASH_SHIFT")
	if text == "" {
		return 0
	}
	shift, err := strconv.Atoi(text)
	if err != nil || shift < 0 {
		t.Fatalf("VMCTL_CRASH_SHIFT=%s: write a number", text)
	}
	return shift
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
	}{{"lost", lost, &r.Lost}, {"leaked", leaked, &r.Leaked}, {"twice", duplicated, &r.Duplicated}} {
		if len(found.things) > 0 {
			*found.count++
			s.errorf("%s: %s", found.word, strings.Join(found.things, ", "))
		}
	}
	if s.failed && len(lost)+len(leaked)+len(duplicated) == 0 {
		r.Rest++
	}
}

// write puts the spec of a site.
func (s *crashSite) write(spec string) {
	const head = "vmctl {\n  project = \"demo\"\n  id      = \"k7m2qd9x4r\"\n}\n"
	text := head + strings.ReplaceAll(spec, "@HOME", s.home)
	if err := os.WriteFile(filepath.Join(s.dir, "main.vmctl.hcl"), []byte(text), 0o644); err != nil { //nolint:gosec // the test's user reads it
		s.t.Fatal(err)
	}
}
