package planner

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Departure is one attribute of an object that something other than vmctl changed.
type Departure struct {
	Path        string
	Is, Applied cty.Value // a sensitive one is marked
	Evidence    string    // in words, without sensitive values
}

// DriftItem is one difference between a record and the world.
type DriftItem struct {
	Kind    providers.FindingKind
	Address spec.Address
	Object  string // the object's name
	// Departure has no path where the whole object is missing or broken.
	Departure
}

// Drift lists the differences between records and the world, and what could not be read. Both are
// sorted.
type Drift struct {
	Items  []DriftItem
	Unread []DriftItem // of the kind unknown
}

// DriftOf returns the drift in d, which Diff made with the spec c and the state s. Pending edits of the
// spec, computed values and ignored attributes are no drift. A condition of the spec that is false with
// the values that objects really have is.
func DriftOf(c *spec.Config, d Delta, s *state.Snapshot) Drift {
	drift := Drift{Items: observedChecks(c, d, s)}
	recorded := func(a spec.Address) bool {
		r, is := s.Records[a]
		return is && !r.Reserved && !d.Aside[a]
	}
	said := map[spec.Address]bool{}
	for _, f := range d.Findings {
		if !recorded(f.Address) {
			continue
		}
		item := DriftItem{Kind: f.Kind, Address: f.Address, Object: f.Object, Departure: Departure{Path: f.Attr, Evidence: strings.Join(f.Evidence, "; ")}}
		switch f.Kind {
		case providers.FindMissing, providers.FindBroken, providers.FindCrashed, providers.FindPartial:
			drift.Items = append(drift.Items, item)
		case providers.FindUnknown:
			said[f.Address] = true
			drift.Unread = append(drift.Unread, item)
		case providers.FindDrift: // its departures tell more
		case providers.FindOrphan, providers.FindCopy, providers.FindLeftover, providers.FindSnapshot, providers.FindNoKey,
			providers.FindInterrupted, providers.FindDirty, providers.FindStaleLock, providers.FindHeldLock, providers.FindBusy,
			providers.FindOutdated, providers.FindJobEnded, providers.FindNotRun, providers.FindUnmanaged, providers.FindRetained, providers.FindStateBehind,
			providers.FindHookFailed, providers.FindUnsynced, providers.FindUnsealed, providers.FindUnasked, providers.FindCheck:
		default:
			panic("unknown finding " + string(f.Kind))
		}
	}
	for i := range d.Changes {
		c := &d.Changes[i]
		if !recorded(c.Address) {
			continue
		}
		for _, departure := range c.Departures {
			drift.Items = append(drift.Items, DriftItem{Kind: providers.FindDrift, Address: c.Address, Object: c.Object.Name, Departure: departure})
		}
		if c.Blocked != nil && c.Blocked.Cause == CauseUnknown && !said[c.Address] {
			drift.Unread = append(drift.Unread, DriftItem{
				Kind: providers.FindUnknown, Address: c.Address, Object: c.Name, Departure: Departure{Evidence: c.Blocked.Error()},
			})
		}
	}
	byAddress := func(a, b DriftItem) int {
		if n := a.Address.Compare(b.Address); n != 0 {
			return n
		}
		return strings.Compare(a.Path+"\x00"+string(a.Kind)+a.Evidence, b.Path+"\x00"+string(b.Kind)+b.Evidence)
	}
	slices.SortFunc(drift.Items, byAddress)
	slices.SortFunc(drift.Unread, byAddress)
	return drift
}
