package libvirt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// sight is all that was seen of one domain.
type sight struct {
	domainRef
	power      power
	configured description  // what the next start will use
	running    *description // what the running QEMU was started with; nil: it is off
	wanted     bool         // it is to be imported
	root       *rootSeen    // its own disk; nil: it has none, or nobody asked
	lost       []string     // what is wrong with the files of vmctl's that it boots from

	snapshots   []snapshot
	checkpoints []string
	job         string // the long operation that it is in: "backup"; "": none
}

// see reads a domain. A domain that does not exist is errAbsent.
func see(ctx context.Context, c connection, ref domainRef) (sight, error) {
	s := sight{domainRef: ref}
	text, err := c.XML(ctx, ref.UUID, asConfigured)
	if err != nil {
		return s, err
	}
	if s.configured, err = describe(text); err != nil {
		return s, err
	}
	if err := s.seePower(ctx, c); err != nil {
		return s, err
	}
	return s, s.seeLayers(ctx, c)
}

// seePower reads the run state and, of what runs, what it runs with.
func (s *sight) seePower(ctx context.Context, c connection) error {
	var err error
	if s.power, err = c.Power(ctx, s.UUID); err != nil {
		return err
	}
	if !s.power.on() {
		return nil
	}
	text, err := c.XML(ctx, s.UUID, asRunning)
	if err != nil {
		return err
	}
	d, err := describe(text)
	switch {
	case s.Transient: // libvirt still shows the definition that was taken away, with its mark
		s.configured.Owner = d.Owner
	case d.Owner == nil: // what runs learns of a mark when it starts again
		d.Owner = s.configured.Owner
	}
	s.running = &d
	if err != nil {
		return err
	}
	s.job, err = c.Job(ctx, s.UUID)
	return err
}

// owner is the mark, nil without one.
func (s sight) owner() *owner { return s.configured.Owner }

// oursFor reports whether vmctl made the domain for an address of this project.
func (s sight) oursFor(p providers.Project, a spec.Address) bool {
	o := s.owner()
	return o != nil && o.ID == p.Lineage() && o.Of == providers.ID(s.UUID) && o.Address == a
}

// A fingerprint is a list of key=value with escaped values, so that two of them
// can be told apart in words. It says nothing about what changes by itself: the
// ports that the kernel chose, process IDs, times.
const (
	printSeparator = ";"
	printVersion   = "v1"
)

func (s sight) fingerprint(uri string) string {
	pairs := [][2]string{{"UUID", s.UUID}, {"name", s.Name}, {"run state", s.power.counted()}}
	if o := s.owner(); o != nil {
		pairs = append(pairs, [2]string{"owner mark", fmt.Sprintf("%s of %s, generation %d", o.Address, o.ID, o.Generation)})
	}
	for _, c := range s.claims(uri) {
		pairs = append(pairs, [2]string{"claim", c.String()})
	}
	for _, file := range s.owner().ownFiles() {
		pairs = append(pairs, [2]string{"own disk", file})
	}
	for _, l := range s.layers(uri) {
		pairs = append(pairs, [2]string{"layer", l.what})
	}
	pairs = append(pairs, s.configured.pairs("")...)
	if s.running != nil {
		pairs = append(pairs, s.running.pairs("running ")...)
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

func (d description) pairs(prefix string) [][2]string {
	pairs := [][2]string{
		{prefix + "cpus", strconv.FormatUint(uint64(d.cpus()), 10)},
		{prefix + "memory", strconv.FormatUint(d.memory(), 10)},
		{prefix + "accel", d.accel()},
		{prefix + "boot files", d.Kernel + " " + d.Initrd},
		{prefix + "kernel command line", short(d.Cmdline)},
	}
	var forwards []string
	for _, f := range d.wantedForwards() {
		forwards = append(forwards, f.hostfwd())
	}
	pairs = append(pairs, [2]string{prefix + "forwarded ports", strings.Join(forwards, " ")})
	for _, drive := range d.disks() {
		pairs = append(pairs, [2]string{prefix + "disk", drive.file()})
	}
	return pairs
}

// short is a digest of what may be long.
func short(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
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

func nameClaim(uri, name string) providers.Claim {
	return providers.Claim{Kind: providers.ClaimName, Key: uri + " " + name}
}

// claims are held as long as the domain is defined; what it runs with counts
// until it stops.
func (s sight) claims(uri string) []providers.Claim {
	all := append([]providers.Claim{nameClaim(uri, s.Name)}, s.configured.claims()...)
	if s.running != nil {
		for _, c := range s.running.claims() {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}
