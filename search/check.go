// Package search generates random specs, edits, worlds, faults and kills, and checks that planner,
// executor and provider together keep the laws of DESIGN.md.
package search

import (
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// Edits checks law 1: a valid edit of a valid spec has a plan, and after one apply only changes
// that are blocked in principle are left.
func Edits(t *testing.T, host Host) {
	total := run(t, host, edit)
	total.checkCoverage(t, host)
}

// Worlds checks that the laws hold whatever other programs do to the world, whatever fails, and
// wherever vmctl is killed: once the faults stop, two applies converge (law 2).
func Worlds(t *testing.T, host Host) { run(t, host, world) }

// run checks as many cases as -rapid.checks says, if it is set. Otherwise it checks the host's
// number of cases, the same ones each time, so that a change fails only for faults of its own;
// make soak draws new ones.
func run(t *testing.T, host Host, check func(*harness)) *tally {
	t.Helper()
	const undecided = "100" // rapid's own default
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == undecided && host.Cases > 0 {
		if err := checks.Value.Set(strconv.Itoa(host.Cases)); err != nil {
			t.Fatal(err)
		}
		defer checks.Value.Set(undecided) //nolint:errcheck // it had that value
		const random, fixed = "0", "5"
		if seed := flag.Lookup("rapid.seed"); seed.Value.String() == random {
			if err := seed.Value.Set(fixed); err != nil {
				t.Fatal(err)
			}
			defer seed.Value.Set(random) //nolint:errcheck // it had that value
		}
	}
	dir := scratch(t, host)
	total := newTally()
	t.Cleanup(func() { total.report(t) })
	rapid.Check(t, func(r *rapid.T) {
		if host.Survey {
			defer total.survey()
		}
		b := newHarness(t.Context(), r, host, dir)
		b.draw, b.total = r, total
		defer b.crashed()
		check(b)
	})
	return total
}

// crashed reports a crash of the program under search, with all that led to it.
func (b *harness) crashed() {
	switch v := recover().(type) {
	case nil:
	case runtime.Error:
		b.failf("1", "it crashed: %v\n%s", v, debug.Stack())
	default: // rapid's way to end a case
		panic(v)
	}
}

// scratch returns a folder, in memory if there is one: the search writes much, and keeps nothing.
func scratch(t *testing.T, host Host) string {
	t.Helper()
	parent := host.Dir
	if parent == "" {
		parent = "/dev/shm"
	}
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		parent = ""
	}
	dir, err := os.MkdirTemp(parent, "search") //nolint:usetesting // it is in memory, and t.TempDir is not
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "k"), []byte("kernel"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// edit is one case of Edits: a spec that was applied, and one or two edits of it.
func edit(b *harness) {
	d := b.drawing()
	d.base()
	d.strict = below(b.draw, 4, "strict") == 0
	b.strict = d.strict
	b.model = d.m.clone()
	b.converge("first")
	for range 1 + below(b.draw, 2, "rounds") {
		b.change(d)
		b.total.cases++
		b.converge("edit")
		d.m = d.m.settled()
	}
}

// change edits the spec.
func (b *harness) change(d *drawing) {
	d.moves, d.classes, d.was = nil, nil, slices.Collect(maps.Keys(d.m.instances()))
	d.got = b.gotPorts
	d.edits(1 + below(b.draw, 3, "edits"))
	b.model = d.m.clone()
	b.moveRecords(d.moves)
	for _, i := range b.model.imports {
		b.must(b.host.Make(filepath.Join(b.dir, "world"), i[1]))
	}
	for _, class := range d.classes {
		b.total.classes[class]++
	}
}

// gotPorts returns the host ports that VMs hold only until they go down, in order.
func (b *harness) gotPorts() []int {
	_, _, world := b.left()
	defer func() { b.must(world.Close()) }()
	var all []int
	for _, system := range world.Systems() {
		for _, o := range system.Inventory.Objects {
			for _, c := range o.HoldsUp {
				_, port, err := net.SplitHostPort(strings.TrimSuffix(c.Key, "/tcp"))
				b.must(err)
				n, err := strconv.Atoi(port)
				b.must(err)
				all = append(all, n)
			}
		}
	}
	slices.Sort(all)
	return all
}

// world is one case of Worlds.
func world(b *harness) {
	d := b.drawing()
	d.strict, b.strict = true, true
	d.base()
	b.model = d.m.clone()
	b.converge("first")
	for range 1 + below(b.draw, 3, "rounds") {
		b.change(d)
		if below(b.draw, 3, "saved") == 0 {
			b.checkStalePlan(d)
		} else {
			b.changeExternally()
		}
		b.drawFaults()
		b.total.cases++
		b.say("apply with faults %v, killed after %d entries, keep going %t:\n%s", b.faults, b.store.entries, b.keepGoing, b.model.hcl(""))
		out := b.apply(nil)
		b.count(out)
		d.m = d.m.settled()
		b.model = d.m.clone()
	}
	b.faults, b.keepGoing, b.planAfter, b.store.entries, b.faultless, b.atWork = nil, false, -1, -1, true, false
	b.settle()
}

// checkStalePlan changes the world after a plan was saved, externally or by another vmctl apply,
// and checks the saved plan's seal: law 7.
func (b *harness) checkStalePlan(d *drawing) {
	b.t.Helper()
	before, sealed := b.sealedPlan()
	if below(b.draw, 2, "overtaken") == 0 {
		b.applyOtherRun(d)
	} else {
		b.changeExternally()
	}
	after, now := b.sealedPlan()
	if len(sealed.Differs(now)) == 0 && before != after {
		b.failf("7", "a saved plan would do something else than it showed, and its seal is the same (-shown +now):\n%s", cmp.Diff(before, after))
	}
}

// sealedPlan plans, and returns the plan as text and its seal.
func (b *harness) sealedPlan() (string, planner.Seal) {
	b.t.Helper()
	c := b.load()
	s := b.store.snapshot
	moved := s.With(planner.Moves(c, s)...)
	p, world, err := planner.Make(b.ctx, b.open, c, moved, b.options(c))
	if err != nil {
		b.failf("1", "no plan: %v", err)
	}
	b.must(world.Close())
	seal, err := p.Seal(moved, b.key)
	b.must(err)
	var steps strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintln(&steps, s.Op, s.Address, s.Object, s.Name, s.Imports, s.Args, s.After)
	}
	return steps.String(), seal
}

// changeExternally applies random external changes to the world.
func (b *harness) changeExternally() {
	for range below(b.draw, 3, "hands") {
		h := b.host.ExternalChanges[below(b.draw, len(b.host.ExternalChanges), "hand")]
		did, err := h.Do(filepath.Join(b.dir, "world"), func(limit int) int { return below(b.draw, limit, "of") })
		b.must(err)
		if did != "" {
			b.say("somebody: %s", did)
			b.total.externalChanges[h.Name]++
		}
	}
}

// drawFaults draws the faults of an apply, and its kill.
func (b *harness) drawFaults() {
	b.faults = nil
	for range below(b.draw, 4, "faults") {
		b.faults = append(b.faults, b.host.Faults[below(b.draw, len(b.host.Faults), "fault")])
	}
	b.keepGoing = below(b.draw, 4, "keep going") == 3
	b.planAfter = below(b.draw, 24, "beside") - 12
	b.atWork = b.host.AtWork != nil && below(b.draw, 2, "goes on") > 0
	b.store.entries = -1
	if below(b.draw, 3, "killed") > 0 {
		b.store.entries = below(b.draw, 24, "entries")
		if len(b.faults) > 0 {
			b.total.both++
		}
	}
}

func (b *harness) count(out outcome) {
	switch {
	case out.killed:
		b.total.killed++
	case !out.ok && len(out.blocked) == 0:
		b.total.failed++
	}
}

// settle applies twice without faults, and checks that only blocked changes and findings about
// other owners' objects are left.
func (b *harness) settle() {
	b.t.Helper()
	for range 2 {
		b.say("apply without faults")
		out := b.apply(nil)
		// What only a later round reads may be blocked, too, by what others have done meanwhile.
		for without := map[spec.Address]planner.Cause{}; ; {
			before := len(without)
			maps.Copy(without, out.blocked)
			if len(without) == before {
				break
			}
			out = b.apply(slices.SortedFunc(maps.Keys(without), spec.Address.Compare))
		}
		if !out.ok {
			b.failf("2", "an apply without faults failed")
		}
	}
	pending, blocked, world := b.left()
	defer func() { b.must(world.Close()) }()
	pending = slices.DeleteFunc(pending, func(l leftover) bool { return l.isOfOthers(blocked) })
	if len(pending) > 0 {
		b.failf("2", "after two applies there is left:\n%s", texts(pending))
	}
	b.compare("2", world, blocked)
	b.total.add(outcome{}, blocked, true)
}

// isOfOthers reports whether a leftover is a finding about the work of others, or about a blocked
// address.
func (l leftover) isOfOthers(blocked map[spec.Address]planner.Cause) bool {
	found := l.kind != ""
	return l.kind == providers.FindCopy || l.kind == providers.FindUnmanaged || l.kind == providers.FindNoKey ||
		l.kind == providers.FindOrphan && strings.HasPrefix(l.name, foundPrefix) || found && blocked[l.of] != ""
}

// converge applies once, and checks that nothing is left. A blocked change may turn out to need
// nothing, such as a restart for a value that stays the same: then a second apply updates its
// record.
func (b *harness) converge(what string) {
	b.t.Helper()
	b.say("%s:\n%s", what, b.model.hcl(""))
	out := b.apply(nil)
	before := out.blocked
	if len(before) > 0 { // as the printed --exclude line says
		out = b.apply(slices.SortedFunc(maps.Keys(before), spec.Address.Compare))
		if len(out.blocked) > 0 {
			b.failf("1", "without what is blocked there is blocked: %v", out.blocked)
		}
	}
	if !out.ok {
		b.failf("1", "an apply without faults failed")
	}
	pending, blocked, world := b.left()
	if len(pending) > 0 && !slices.ContainsFunc(pending, func(l leftover) bool { return before[l.of] == "" || !l.record }) {
		b.must(world.Close())
		if !b.apply(slices.SortedFunc(maps.Keys(blocked), spec.Address.Compare)).ok {
			b.failf("1", "the apply after it failed")
		}
		pending, blocked, world = b.left()
	}
	defer func() { b.must(world.Close()) }()
	for a, cause := range blocked {
		if before[a] == "" {
			b.failf("1", "%s is blocked now (%s), and was not before", a, cause)
		}
	}
	if len(pending) > 0 {
		b.failf("1", "after one apply there is left:\n%s", texts(pending))
	}
	b.compare("1", world, blocked)
	b.total.add(out, before, b.strict)
}
