package search

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vmctl/planner"
	"vmctl/spec"
)

// tally counts the cases of a search and their outcomes.
type tally struct {
	cases           int
	classes         counts
	broken          counts
	causes          counts // of blocked changes
	strict          counts // of blocked changes, in cases whose policies forbid something
	changes         int    // changes that were planned, in the other cases
	externalChanges counts
	failed          int // applies that a fault ended
	killed          int // applies that were killed
	both            int // applies with faults that were to be killed

	overtakenPlans  int // plans that were saved while another run applied
	concurrentPlans int // plans while a run was at it
	first           map[string]string
}

func (l *tally) add(out outcome, blocked map[spec.Address]planner.Cause, strict bool) {
	causes := l.causes
	if strict {
		causes = l.strict
	} else {
		l.changes += out.changes
	}
	for _, cause := range blocked {
		causes[string(cause)]++
	}
}

func newTally() *tally {
	return &tally{classes: counts{}, broken: counts{}, causes: counts{}, strict: counts{}, externalChanges: counts{}, first: map[string]string{}}
}

func (l *tally) report(t *testing.T) {
	t.Helper()
	t.Logf("%d edits, by class:\n%s", l.cases, strings.Join(l.classes.lines(), "\n"))
	t.Logf("%d applies with faults and a kill to come; %d failed, %d were killed; by hand:\n%s", l.both, l.failed, l.killed, strings.Join(l.externalChanges.lines(), "\n"))
	t.Logf("%d plans beside a run; %d plans that another run overtook", l.concurrentPlans, l.overtakenPlans)
	t.Logf("%d changes where no policy forbids anything, and blocked by cause:\n%s", l.changes, strings.Join(l.causes.lines(), "\n"))
	t.Logf("blocked where policies forbid something or others meddle:\n%s", strings.Join(l.strict.lines(), "\n"))
	for _, key := range slices.Sorted(maps.Keys(l.broken)) {
		t.Logf("%d times: %s\n--- first: %s", l.broken[key], key, l.first[key])
	}
}

// counts maps a name to the number of times that it occurred.
type counts map[string]int

func (c counts) lines() []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(c)) {
		all = append(all, fmt.Sprintf("%7d %s", c[key], key))
	}
	return all
}

// minCases is the number of cases from which on each class of edits must have occurred.
const minCases = 2000

// checkCoverage checks that each class of edits occurred, and that few changes of valid edits were
// blocked: a planner that blocks everything would break no law.
func (l *tally) checkCoverage(t *testing.T, host Host) {
	t.Helper()
	if l.cases < minCases || t.Failed() {
		return
	}
	for _, e := range modelFor(host).allEdits() {
		if least := l.cases / minCases; l.classes[e.class] < least {
			t.Errorf("%d cases have %d edits of the class %q, and were to have %d at least", l.cases, l.classes[e.class], e.class, least)
		}
	}
	blocked := 0
	for _, n := range l.causes {
		blocked += n
	}
	if blocked*20 > l.changes {
		t.Errorf("%d changes were blocked, and %d were made: that is more than one in twenty", blocked, l.changes)
	}
}

// survey counts a broken law instead of failing.
func (l *tally) survey() {
	switch v := recover().(type) {
	case nil:
	case broken:
		l.broken[signature(v.what)]++
		if l.broken[signature(v.what)] == 1 {
			l.first[signature(v.what)] = v.what
		}
	default:
		panic(v)
	}
}

var volatilePattern = regexp.MustCompile(`vm\.[a-e](\["k."\])?|disk\.[xyz]|box\.[f-i]|desk\.[vw]|engine\.[st]|image\.[jk]|volume\.[lm]|container\.[nou]|n[123]|demo\.[a-z]|[0-9a-f]{8}-[0-9a-f-]*`)

// signature returns the same text for violations that differ only in names and IDs.
func signature(what string) string {
	first, _, _ := strings.Cut(what, "\n\n")
	lines := strings.Split(volatilePattern.ReplaceAllString(first, "_"), "\n")
	kept := lines[:1]
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "+ ") || !strings.Contains(what, "-want +is") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept[:min(3, len(kept))], " | ")
}
