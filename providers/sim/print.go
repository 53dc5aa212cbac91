package sim

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"vmctl/providers"
)

// A fingerprint is a list of key=value with escaped values, so that two of them
// can be told apart in words. It says nothing about what changes by itself: the
// ports that the kernel chose, process IDs, times.
const (
	printSeparator = ";"
	printVersion   = "v1"
)

func (s sight) fingerprint() string {
	pairs := [][2]string{{"id", string(s.ID)}, {"name", s.Name}, {"run state", s.state}}
	if !s.onDisk {
		pairs = append(pairs, [2]string{"file", "gone"})
	}
	if !s.disk {
		pairs = append(pairs, [2]string{"disk", "gone"})
	}
	if s.lock.verdict != lockFree && s.lock.verdict != lockOwn {
		pairs = append(pairs, [2]string{"disk lock", string(s.lock.verdict)})
	}
	if o := s.Owner; o != nil {
		pairs = append(pairs, [2]string{"owner mark", fmt.Sprintf("%s of %s, generation %d", o.Address, o.ID, o.Generation)})
	}
	for _, c := range s.claims() {
		pairs = append(pairs, [2]string{"claim", c.String()})
	}
	pairs = append(pairs, s.Config.pairs("")...)
	if s.on() && s.run != nil {
		pairs = append(pairs, s.run.With.pairs("running ")...)
	}
	fields := []string{printVersion}
	for _, p := range pairs {
		fields = append(fields, url.QueryEscape(p[0])+"="+url.QueryEscape(p[1]))
	}
	return strings.Join(fields, printSeparator)
}

func (c *config) pairs(prefix string) [][2]string {
	if c == nil {
		return [][2]string{{prefix + "configuration", "none"}}
	}
	b := boot{}
	if c.Boot != nil {
		b = *c.Boot
	}
	var forwards []string
	for _, f := range c.Forwards {
		forwards = append(forwards, fmt.Sprintf("%s/%s to %d", f.address(), f.Protocol, f.Guest))
	}
	return [][2]string{
		{prefix + "cpus", strconv.FormatUint(c.CPUs, 10)},
		{prefix + "memory", strconv.FormatUint(c.Memory, 10)},
		{prefix + "accel", c.Accel},
		{prefix + "boot files", b.KernelSHA256 + " " + b.InitrdSHA256},
		{prefix + "kernel command line", b.Cmdline},
		{prefix + "forwarded ports", strings.Join(forwards, ", ")},
	}
}

// claims are held as long as the VM exists; what it runs with counts until it
// stops.
func (s sight) claims() []providers.Claim {
	all := append([]providers.Claim{nameClaim(s.Name)}, s.Config.claims()...)
	if s.on() && s.run != nil {
		for _, c := range s.run.With.claims() {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

func nameClaim(name string) providers.Claim { return providers.Claim{Kind: claimName, Key: name} }

// differences says in words what two fingerprints disagree about.
func differences(planned, now string) []string {
	before, after := readPrint(planned), readPrint(now)
	var all []string
	for _, p := range before {
		if !slices.Contains(after, p) {
			all = append(all, fmt.Sprintf("planned on %s %q", p[0], p[1]))
		}
	}
	for _, p := range after {
		if !slices.Contains(before, p) {
			all = append(all, fmt.Sprintf("found %s %q", p[0], p[1]))
		}
	}
	return all
}

func readPrint(fingerprint string) [][2]string {
	var pairs [][2]string
	for field := range strings.SplitSeq(fingerprint, printSeparator) {
		k, v, _ := strings.Cut(field, "=")
		key, keyErr := url.QueryUnescape(k)
		value, valueErr := url.QueryUnescape(v)
		if keyErr == nil && valueErr == nil {
			pairs = append(pairs, [2]string{key, value})
		}
	}
	return pairs
}
