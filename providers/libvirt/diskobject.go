package libvirt

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// object describes a disk for the planner.
func (s observedDisk) object(uri string, users []user) providers.Object {
	o := providers.Object{
		Kind: spec.Disk, ID: s.id(), Name: s.name(), Attrs: s.attrs(), Holds: []providers.Claim{volumeClaim(uri, s.name())},
		Unreadable: map[string]string{}, Fingerprint: s.fingerprint(),
	}
	if s.mark != nil {
		o.Owner = &s.mark.Mark
	}
	o.Findings = s.findings(users)
	return o
}

// attrs returns the attributes of the disk in the system.
func (s observedDisk) attrs() cty.Value {
	all := s.computed()
	all["size"] = cty.NumberUIntVal(s.size())
	all["format"] = cty.StringVal(s.Format)
	return cty.ObjectVal(all)
}

func (s observedDisk) computed() map[string]cty.Value {
	return map[string]cty.Value{"id": cty.StringVal(string(s.id())), "path": cty.StringVal(s.Path)}
}

// sector is the smallest part of a disk (bytes).
const sector = 512

// size returns the size that a guest sees (bytes): whole sectors.
func (v volume) size() uint64 { return (v.Capacity + sector - 1) / sector * sector }

// volumeClaim returns the claim on the name of a volume.
func volumeClaim(uri, name string) providers.Claim {
	return providers.Claim{Kind: providers.ClaimName, Key: uri + " volume " + name}
}

// fingerprint returns the fingerprint of a disk. It leaves out the users of the disk: a plan
// takes it from one domain and gives it to another.
func (s observedDisk) fingerprint() string {
	var p guard.Print
	p.Add("path", s.Path)
	p.Add("size", strconv.FormatUint(s.size(), 10))
	p.Add("format", s.Format)
	if s.mark != nil {
		p.AddMark(&s.mark.Mark)
	}
	return p.String()
}

// findings returns the problems of a disk itself.
func (s observedDisk) findings(users []user) []providers.Finding {
	var all []providers.Finding
	add := func(kind providers.FindingKind, action string, evidence ...string) {
		f := providers.Finding{Kind: kind, Object: s.name(), Evidence: evidence, Action: action}
		if s.mark != nil && !s.copy {
			f.Address = s.mark.Address
		}
		all = append(all, f)
	}
	if s.copy {
		add(providers.FindCopy, "left alone", fmt.Sprintf("its mark %s was written for the volume %s (%s)", sidecarOf(s.Name), s.mark.Volume, s.mark.Of))
	}
	if s.mark != nil && !s.copy && s.Capacity == 0 {
		add(providers.FindBroken, "", "the volume "+s.Path+" holds nothing that is a disk")
	}
	for _, u := range users {
		for _, l := range u.layers {
			add(providers.FindSnapshot, l.end, fmt.Sprintf("domain %s, which has it: %s", u.name, l.what))
		}
		if u.job != "" {
			add(providers.FindBusy, "to end it: "+u.endJob, fmt.Sprintf("domain %s, which has it: %s", u.name, u.job))
		}
		if u.running && !u.ours {
			f := providers.Finding{
				Kind: providers.FindHeldLock, Object: s.name(), Claim: machine.DiskClaim(s.id()), Action: "left alone",
				Evidence: []string{fmt.Sprintf("domain %s (%s), which is not vmctl's, runs with it", u.name, u.uuid)},
			}
			if s.mark != nil {
				f.Address = s.mark.Address
			}
			all = append(all, f)
		}
	}
	return all
}

// user is a domain that has a disk.
type user struct {
	name, uuid    string
	running, ours bool
	layers        []layer // of vmctl's own domains
	job, endJob   string  // its long operation in words, and the command that ends that; "": none
}

// names lists users in words: `domain db (UUID)`.
func names(users []user) string {
	var all []string
	for _, u := range users {
		all = append(all, fmt.Sprintf("domain %s (%s)", u.name, u.uuid))
	}
	return strings.Join(all, " and ")
}
