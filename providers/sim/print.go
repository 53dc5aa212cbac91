package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	if !s.root {
		pairs = append(pairs, [2]string{"disk", "gone"})
	}
	if s.lock.verdict != lockFree && s.lock.verdict != lockOwn {
		pairs = append(pairs, [2]string{"disk lock", string(s.lock.verdict)})
	}
	if o := s.Owner; o != nil {
		pairs = append(pairs, [2]string{"owner mark", fmt.Sprintf("%s of %s, generation %d", o.Address, o.ID, o.Generation)})
	}
	for _, c := range s.claims() {
		if c.Kind == providers.ClaimDisk {
			continue // its disk may get another ID meanwhile; the name is below
		}
		pairs = append(pairs, [2]string{"claim", c.String()})
	}
	pairs = append(pairs, s.Config.pairs("")...)
	if s.on() && s.run != nil {
		pairs = append(pairs, s.run.With.pairs("running ")...)
	}
	return printOf(pairs)
}

func printOf(pairs [][2]string) string {
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
	pairs := [][2]string{
		{prefix + "cpus", strconv.FormatUint(c.CPUs, 10)},
		{prefix + "memory", strconv.FormatUint(c.Memory, 10)},
		{prefix + "accel", c.Accel},
		{prefix + "boot files", b.KernelSHA256 + " " + b.InitrdSHA256},
		{prefix + "kernel command line", b.Cmdline},
		{prefix + "forwarded ports", strings.Join(forwards, ", ")},
	}
	if len(c.Disks) > 0 {
		pairs = append(pairs, [2]string{prefix + "disks", strings.Join(names(c.Disks), ", ")})
	}
	if c.RootSize > 0 {
		pairs = append(pairs, [2]string{prefix + "root disk's size", strconv.FormatUint(c.RootSize, 10)})
	}
	if c.CloudInit != nil {
		pairs = append(pairs, [2]string{prefix + "cloud-init", digest(c.CloudInit)})
	}
	if len(c.Triggers) > 0 {
		pairs = append(pairs, [2]string{prefix + "restart triggers", digest(c.Triggers)})
	}
	return pairs
}

func names(disks []attached) []string {
	var all []string
	for _, d := range disks {
		all = append(all, d.Name)
	}
	return all
}

// digest is of what may be long, or not for everybody's eyes.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is made of texts
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// claims are held as long as the VM exists; what it runs with counts until it
// stops.
func (s sight) claims() []providers.Claim {
	all := []providers.Claim{nameClaim(s.Name)}
	add := func(c *config) {
		for _, claim := range append(c.ports(), s.diskClaims(c)...) {
			if !slices.Contains(all, claim) {
				all = append(all, claim)
			}
		}
	}
	add(s.Config)
	if s.on() && s.run != nil {
		add(&s.run.With)
	}
	return all
}

// diskClaims are on the disks that are there.
func (s sight) diskClaims(c *config) []providers.Claim {
	if c == nil {
		return nil
	}
	var all []providers.Claim
	for _, a := range c.Disks {
		if claim := s.claimOn(a); claim.Key != "" {
			all = append(all, claim)
		}
	}
	return all
}

// claimOn is the claim on a disk that the VM is defined with: by the ID that the disk
// has now, else by the one that it had then. Its key is "" where none is known.
func (s sight) claimOn(a attached) providers.Claim {
	if d, there := s.disks[a.Name]; there && a.is(d) {
		return diskClaim(d.ID)
	}
	return diskClaim(a.ID)
}

func nameClaim(name string) providers.Claim {
	return providers.Claim{Kind: providers.ClaimName, Key: name}
}

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
