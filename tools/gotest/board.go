package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// event is a line of go test -json (go doc test2json).
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

// name is the package of a test and its name; without a test, the package itself.
type name struct{ pkg, test string }

func (n name) String() string { return strings.TrimSpace(n.pkg + " " + n.test) }

// running is a test that has begun, or a package.
type running struct {
	begun  time.Time // or went on, after it had waited for its turn
	waits  bool      // for its turn among parallel tests
	output []string
}

// result is a test that ended.
type result struct {
	name    name
	verdict string // ok, skip, FAIL, or hung for a test that had not ended when its package did
	seconds float64
	output  []string // of skip, FAIL and hung
}

// board holds what is known of the tests. Its Write takes the lines of go test -json.
type board struct {
	out io.Writer

	mu      sync.Mutex
	partial []byte
	live    map[name]*running
	results []result
	spoken  time.Time // the last event
	shown   time.Time // the last line that was printed
}

func newBoard(out io.Writer) *board {
	now := time.Now()
	return &board{out: out, live: map[name]*running{}, spoken: now, shown: now}
}

// Write takes output of go test; it never fails.
func (b *board) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.partial = append(b.partial, p...)
	for {
		line, rest, whole := bytes.Cut(b.partial, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		b.partial = rest
		b.take(line)
	}
}

func (b *board) take(line []byte) {
	b.spoken = time.Now()
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		b.print("%s\n", line)
		return
	}
	at := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		b.print("%s", e.Output)
	case "build-fail":
		b.results = append(b.results, result{name: name{e.ImportPath, ""}, verdict: "FAIL", output: []string{"it was not built\n"}})
	case "start", "run":
		b.live[at] = &running{begun: b.spoken}
	case "output":
		if b.live[at] == nil {
			b.live[at] = &running{begun: b.spoken}
		}
		b.live[at].output = append(b.live[at].output, e.Output)
	case "pause", "cont":
		if test := b.live[at]; test != nil {
			test.begun, test.waits = b.spoken, e.Action == "pause"
		}
	case "pass", "fail", "skip":
		b.end(at, e)
	}
}

// end notes what became of a test or a package.
func (b *board) end(at name, e event) {
	ended := result{name: at, verdict: map[string]string{"pass": "ok", "fail": "FAIL", "skip": "skip"}[e.Action], seconds: e.Elapsed}
	if live := b.live[at]; live != nil && e.Action != "pass" {
		ended.output = live.output
	}
	delete(b.live, at)
	if at.test != "" {
		b.results = append(b.results, ended)
		if ended.verdict == "FAIL" {
			b.print("%s", strings.Join(ended.output, ""))
		}
		return
	}
	for _, test := range b.leftOver(at.pkg) {
		b.results = append(b.results, test)
		b.print("%s", strings.Join(test.output, ""))
	}
	if ended.verdict == "FAIL" {
		b.print("%s", strings.Join(ended.output, ""))
		if !slices.ContainsFunc(b.results, func(r result) bool { return r.name.pkg == at.pkg && r.verdict != "ok" && r.verdict != "skip" }) {
			b.results = append(b.results, ended) // no test of it failed: the package did
		}
	}
	if e.Action != "skip" { // a package without tests
		b.print("%-4s %s %.1fs\n", ended.verdict, at.pkg, e.Elapsed)
	}
}

// leftOver takes the tests of a package from those that run: their package ended before them.
func (b *board) leftOver(pkg string) []result {
	var left []result
	for at, test := range b.live {
		if at.pkg == pkg {
			left = append(left, result{name: at, verdict: "hung", seconds: time.Since(test.begun).Seconds(), output: test.output})
			delete(b.live, at)
		}
	}
	slices.SortFunc(left, func(a, b result) int { return strings.Compare(a.name.test, b.name.test) })
	return left
}

func (b *board) print(format string, args ...any) {
	b.shown = time.Now()
	fmt.Fprintf(b.out, format, args...)
}

// say prints beside the events.
func (b *board) say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.print(format, args...)
}

// idle returns for how long the running packages have said nothing. While none runs, something is being compiled.
func (b *board) idle(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.live) == 0 {
		return 0
	}
	return now.Sub(b.spoken)
}

// remind names the running tests when nothing was printed for a minute.
func (b *board) remind(now time.Time) {
	b.mu.Lock()
	quiet := now.Sub(b.shown) >= time.Minute
	b.mu.Unlock()
	if names := b.running(now); quiet && names != "" {
		b.say(".. %s\n", names)
	}
}

// running names the innermost tests that run, with the time since each began, the eldest first. Those that wait for their turn
// are left out.
func (b *board) running(now time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	type entry struct {
		name  name
		since time.Duration
	}
	var entries []entry
	for at, test := range b.live {
		inner := test.waits
		for other := range b.live {
			inner = inner || other.pkg == at.pkg && other != at && (at.test == "" || strings.HasPrefix(other.test, at.test+"/"))
		}
		if !inner {
			entries = append(entries, entry{at, now.Sub(test.begun)})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return int(b.since - a.since) })
	var names []string
	for _, e := range entries[:min(len(entries), 8)] {
		names = append(names, fmt.Sprintf("%s (%s)", e.name, e.since.Round(time.Second)))
	}
	return strings.Join(names, ", ")
}
