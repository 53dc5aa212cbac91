package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// fingerprint covers the facts that a step on the VM relies on.
func (s observedVM) fingerprint() string {
	var p guard.Print
	p.Add("id", string(s.ID))
	p.Add("name", s.Name)
	p.Add("run state", s.state)
	if !s.onDisk {
		p.Add("file", "gone")
	}
	if !s.root {
		p.Add("disk", "gone")
	}
	if s.lock.verdict != lockFree && s.lock.verdict != lockOwn {
		p.Add("disk lock", string(s.lock.verdict))
	}
	p.AddMark(s.Owner.mark())
	for _, c := range s.claims() {
		if c.Kind == providers.ClaimDisk {
			continue // its disk may get another ID meanwhile; the name is covered below
		}
		p.Add("claim", c.String())
	}
	s.Config.addTo(&p, "")
	if s.on() && s.run != nil {
		s.run.With.addTo(&p, "running ")
	}
	return p.String()
}

// addTo adds the configuration of a VM.
func (c *config) addTo(p *guard.Print, prefix string) {
	if c == nil {
		p.Add(prefix+"configuration", "none")
		return
	}
	b := machine.Boot{}
	if c.Boot != nil {
		b = *c.Boot
	}
	var forwards []string
	for _, f := range c.Forwards {
		forwards = append(forwards, fmt.Sprintf("%s/%s to %d", f.Listens(), f.Protocol, f.Guest))
	}
	p.Add(prefix+"cpus", strconv.FormatUint(c.CPUs, 10))
	p.Add(prefix+"memory", strconv.FormatUint(c.Memory, 10))
	p.Add(prefix+"accel", c.Accel)
	p.Add(prefix+"boot files", b.KernelSHA256+" "+b.InitrdSHA256)
	p.Add(prefix+"kernel command line", b.Cmdline)
	p.Add(prefix+"forwarded ports", strings.Join(forwards, ", "))
	if len(c.Disks) > 0 {
		p.Add(prefix+"disks", strings.Join(names(c.Disks), ", "))
	}
	if c.RootSize > 0 {
		p.Add(prefix+"root disk's size", strconv.FormatUint(c.RootSize, 10))
	}
	if c.CloudInit != nil {
		p.Add(prefix+"cloud-init", digest(c.CloudInit))
	}
	if len(c.Triggers) > 0 {
		p.Add(prefix+"restart triggers", digest(c.Triggers))
	}
}

func names(disks []attached) []string {
	var all []string
	for _, d := range disks {
		all = append(all, d.Name)
	}
	return all
}

// digest returns the digest of a value that may be long or secret.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // JSON can hold all these values
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// claims returns the claims of the VM: it holds them as long as it exists. Claims of its
// running configuration count until it stops.
func (s observedVM) claims() []providers.Claim {
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

// diskClaims returns the claims on the disks of a configuration, as far as their IDs are
// known.
func (s observedVM) diskClaims(c *config) []providers.Claim {
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

// claimOn returns the claim on a disk that the VM is defined with: by the present ID of the
// disk, else by its ID when it was attached. Its key is "" if neither is known.
func (s observedVM) claimOn(a attached) providers.Claim {
	if d, there := s.disks[a.Name]; there && a.is(d) {
		return machine.DiskClaim(d.ID)
	}
	return machine.DiskClaim(a.ID)
}

func nameClaim(name string) providers.Claim {
	return providers.Claim{Kind: providers.ClaimName, Key: name}
}
