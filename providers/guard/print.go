package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"vmctl/providers"
)

// A Print collects the values that a step relies on, each under a name. Its text is a
// fingerprint: Differences tells in words how two of them differ. It leaves out values that
// change by themselves, such as ports that the kernel chose, process IDs and times.
type Print [][2]string

const (
	printSeparator = ";"
	printVersion   = "v1"
)

// Add adds a value under a name.
func (p *Print) Add(name, value string) { *p = append(*p, [2]string{name, value}) }

// AddMark adds an owner mark, if there is one.
func (p *Print) AddMark(m *providers.Mark) {
	if m != nil {
		p.Add("owner mark", fmt.Sprintf("%s of %s, generation %d", m.Address, m.ID, m.Generation))
	}
}

// String returns the fingerprint.
func (p Print) String() string {
	fields := []string{printVersion}
	for _, pair := range p {
		fields = append(fields, url.QueryEscape(pair[0])+"="+url.QueryEscape(pair[1]))
	}
	return strings.Join(fields, printSeparator)
}

// Differences lists in words the differences between two fingerprints.
func Differences(planned, now string) []string {
	before, after := read(planned), read(now)
	var all []string
	for _, pair := range before {
		if !slices.Contains(after, pair) {
			all = append(all, fmt.Sprintf("planned on %s %q", pair[0], pair[1]))
		}
	}
	for _, pair := range after {
		if !slices.Contains(before, pair) {
			all = append(all, fmt.Sprintf("found %s %q", pair[0], pair[1]))
		}
	}
	return all
}

func read(fingerprint string) Print {
	var p Print
	for field := range strings.SplitSeq(fingerprint, printSeparator) {
		k, v, _ := strings.Cut(field, "=")
		name, nameErr := url.QueryUnescape(k)
		value, valueErr := url.QueryUnescape(v)
		if nameErr == nil && valueErr == nil {
			p.Add(name, value)
		}
	}
	return p
}

// Keyed returns a digest of 12 characters of a text that may have secrets in it. digest makes it
// (providers.Settings.Digest); nil: there is no key.
func Keyed(digest func(string) string, text string) string {
	if digest == nil {
		return Short(text)
	}
	return digest(text)[:12]
}

// Short returns a digest of 12 characters of what may be long.
func Short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
