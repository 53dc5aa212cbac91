// Package pattern has regular expressions that cost nothing until they are used: a process that only shows its version
// compiles none.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression (package regexp) that is compiled when it is first used. Several goroutines may use it.
type Pattern struct{ compiled func() *regexp.Regexp }

// New returns the pattern of an expression. Its first use panics if the expression cannot be compiled.
func New(expression string) *Pattern {
	return &Pattern{compiled: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// Match reports whether b has a match.
func (p *Pattern) Match(b []byte) bool { return p.compiled().Match(b) }

// MatchString reports whether s has a match.
func (p *Pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

// FindString returns the leftmost match in s; "": there is none.
func (p *Pattern) FindString(s string) string { return p.compiled().FindString(s) }

// FindStringSubmatch returns the leftmost match in s and those of its groups; nil: there is none.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }

// FindAllString returns the first n matches in s, or with -1 all.
func (p *Pattern) FindAllString(s string, n int) []string { return p.compiled().FindAllString(s, n) }

// ReplaceAllString returns s with each match replaced; $1 in with is the text of the first group.
func (p *Pattern) ReplaceAllString(s, with string) string {
	return p.compiled().ReplaceAllString(s, with)
}

// String returns the expression.
func (p *Pattern) String() string { return p.compiled().String() }
