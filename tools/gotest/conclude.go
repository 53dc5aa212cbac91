package main

import (
	"fmt"
	"slices"
	"strings"
)

const (
	slowest   = 15 // tests named at the end
	lastLines = 12 // of each failed test
)

// conclude prints the slowest tests, the skipped ones and, last of all, the failed ones. Tests that were never said to have
// ended, since go test itself was ended, are hung.
func (b *board) conclude() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at := range b.live {
		b.results = append(b.results, b.leftOver(at.pkg)...)
	}
	tests := slices.DeleteFunc(slices.Clone(b.results), func(r result) bool { return r.name.test == "" || b.holds(r.name) })
	slices.SortStableFunc(tests, func(a, b result) int { return int(1000 * (b.seconds - a.seconds)) })
	b.print("== %d tests; the slowest:\n", len(tests))
	for _, test := range tests[:min(len(tests), slowest)] {
		b.print("%8.1fs  %s\n", test.seconds, test.name)
	}
	for _, test := range tests {
		if test.verdict == "skip" {
			b.print("== skipped: %s: %s\n", test.name, reason(test.output))
		}
	}
	for _, failed := range b.results {
		if failed.verdict != "ok" && failed.verdict != "skip" && !b.holds(failed.name) {
			b.print("== %s: %s\n%s", failed.verdict, failed.name, tail(failed.output))
		}
	}
}

// holds reports whether a failed or hung test is inside of another one: the inner one's output says more.
func (b *board) holds(outer name) bool {
	return slices.ContainsFunc(b.results, func(r result) bool {
		return r.name.pkg == outer.pkg && (outer.test == "" && r.name.test != "" || strings.HasPrefix(r.name.test, outer.test+"/")) && r.verdict != "skip"
	})
}

// failures counts what failed or hung.
func (b *board) failures() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	count := 0
	for _, r := range b.results {
		if r.verdict != "ok" && r.verdict != "skip" {
			count++
		}
	}
	return count
}

// list has a line for each test, in the order of their names: result, package, name.
func (b *board) list() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for _, r := range b.results {
		lines = append(lines, fmt.Sprintf("%-4s %s\n", r.verdict, r.name))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[5:], b[5:]) })
	return strings.Join(lines, "")
}

// tail returns the last lines of a test's output, without go test's own.
func tail(output []string) string {
	var lines []string
	for line := range strings.Lines(strings.Join(output, "")) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "=== ") && !strings.HasPrefix(trimmed, "--- ") {
			lines = append(lines, "    "+strings.TrimRight(line, "\n")+"\n")
		}
	}
	return strings.Join(lines[max(0, len(lines)-lastLines):], "")
}

// reason returns the words with which a test skipped itself.
func reason(output []string) string {
	return strings.Join(strings.Fields(tail(output)), " ")
}
