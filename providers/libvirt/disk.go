package libvirt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/machine"
)

// store describes a disk that the spec wants.
type store struct {
	Size   uint64 // bytes
	Format string // raw, qcow2
}

func storeOf(v cty.Value) (store, error) {
	if !ctyread.Known(v) {
		return store{}, fmt.Errorf("it has no attributes")
	}
	return store{Size: ctyread.Uint(v, "size"), Format: ctyread.Text(v, "format")}, nil
}

// observedDisk holds all observations of one disk.
type observedDisk struct {
	volume
	in   pool
	mark *sidecar // nil: none, or an invalid one
	copy bool     // the mark was written for another volume
}

// id returns the UUID in the mark, or the path of a volume without a mark of its own.
func (s observedDisk) id() providers.ID {
	if s.mark == nil || s.copy {
		return providers.ID(s.Path)
	}
	return s.mark.Of
}

// name returns the name of the volume without the suffix of its format.
func (s observedDisk) name() string { return nameOfVolume(s.Name, s.Format) }

func nameOfVolume(volume, format string) string {
	if name, ok := strings.CutSuffix(volume, "."+format); ok && name != "" {
		return name
	}
	return volume
}

func volumeOf(name, format string) string { return name + "." + format }

// described returns the disk in a spec's words.
func (s observedDisk) described(uri string) machine.SeenDisk {
	seen := machine.SeenDisk{
		ID: s.id(), Name: s.name(), Path: s.Path, Size: s.size(), Format: s.Format, Claims: []providers.Claim{volumeClaim(uri, s.name())},
	}
	if s.mark != nil {
		seen.Mark = &s.mark.Mark
	}
	return seen
}

// object describes the disk, which users have, for the planner.
func (s observedDisk) object(uri string, users []user) providers.Object {
	seen := s.described(uri)
	seen.Findings = s.findings(users)
	return seen.Object()
}

// sector is the smallest part of a disk (bytes).
const sector = machine.SectorBytes

// size returns the size that a guest sees (bytes): whole sectors.
func (v volume) size() uint64 { return (v.Capacity + sector - 1) / sector * sector }

// volumeClaim returns the claim on the name of a volume.
func volumeClaim(uri, name string) providers.Claim {
	return providers.Claim{Kind: providers.ClaimName, Key: uri + " volume " + name}
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
			add(providers.FindSnapshot, "", fmt.Sprintf("domain %s, which has it: %s", u.name, l.what))
			all[len(all)-1].Next = providers.Say(l.end)
		}
		if u.job != "" {
			add(providers.FindBusy, "", fmt.Sprintf("domain %s, which has it: %s", u.name, u.job))
			all[len(all)-1].Next = providers.Say("to end it: " + u.endJob)
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

const opGrow = machine.OpGrow

// diskSteps returns the steps of a change of a disk.
func (p *Provider) diskSteps(c providers.Change) ([]providers.Step, error) {
	var want store
	if c.Action == providers.Create || c.Action == providers.ReplaceIt {
		var err error
		if want, err = storeOf(c.Want); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Address, err)
		}
		if err := machine.CheckName(c.Name); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Address, err)
		}
	}
	policy := machine.DecodePolicy(c.Policy)
	steps, err := machine.DiskRecipe(c, machine.DiskAbilities{
		Policy: policy, Change: policy.Create, Wanted: []providers.Claim{volumeClaim(p.location.URI, c.Name)}, Clear: opDelete,
		Leaves: func(op string) []string {
			switch op {
			case opDefine:
				volume := volumeOf(c.Name, want.Format)
				return []string{fmt.Sprintf("volumes %s and %s", volume, sidecarOf(volume))}
			case opDelete:
				return []string{"its volume and the mark beside it"}
			default:
				return nil
			}
		},
	})
	if slices.ContainsFunc(steps, func(step providers.Step) bool { return step.Op == opGrow || step.Op == opDelete }) {
		if err := errors.Join(onLayers(c.Object), inJob(c.Object)); err != nil {
			return nil, err
		}
	}
	return steps, err
}
