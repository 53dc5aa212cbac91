package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// Reach is one thing beyond a resource that it reaches once the plan is carried out, and did not before.
type Reach struct {
	Address spec.Address
	What    spec.Reach
	On      spec.Address // the VM whose port it is; zero: it is this host's
	Text    string       // how the files say it, without what is sensitive
}

const reachDigestBytes = 6

// ReachDigest returns a digest of what a plan reaches: the same for the same list, on every machine.
func ReachDigest(all []Reach) string {
	lines := [][]string{}
	for _, r := range all {
		lines = append(lines, []string{r.Address.String(), string(r.What), r.On.String(), r.Text})
	}
	text, err := json.Marshal(lines)
	if err != nil {
		panic("strings have a JSON form: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:reachDigestBytes])
}

// IsReachDigest reports whether a text has the form of what ReachDigest returns.
func IsReachDigest(text string) bool {
	digest, err := hex.DecodeString(text)
	return err == nil && len(digest) == reachDigestBytes && text == hex.EncodeToString(digest)
}

// findReach lists what the changes of the plan reach. What is blocked reaches nothing.
func (o *orderer) findReach() {
	p := o.plan
	for i := range p.Changes {
		c := &p.Changes[i]
		_, late := o.late[i] // a later round plans it
		idle := c.Action == providers.NoOp && len(c.Policies) == 0
		if c.Want == nil || late || idle || c.Blocked != nil || c.Action == providers.Destroy || c.Action == providers.Forget || o.delta.Aside[c.Address] {
			continue
		}
		before := o.reaches(c, recordedSite)
		for _, r := range o.reaches(c, wantedSite) {
			if !slices.Contains(before, r) {
				p.Reach = append(p.Reach, r)
			}
		}
	}
}

// site holds, of the object of a change, its place and its values by one source: its block or its record.
type site struct {
	provider               spec.ProviderRef
	settings, want, policy cty.Value
	inside                 spec.Address
	uses                   []spec.Address
}

// wantedSite returns the site by the block of a change, and recordedSite the one by its record; false: there is none. A record
// without an object was only reserved.
func wantedSite(c *Change) (site, bool) {
	if c.Want == nil {
		return site{}, false
	}
	r := c.Want
	return site{r.Provider, c.Aim().Settings, r.Want, r.Policy, r.Inside, r.Uses}, true
}

func recordedSite(c *Change) (site, bool) {
	if c.Record == nil || c.Record.Reserved {
		return site{}, false
	}
	r := c.Record
	return site{r.Provider, r.Settings, r.Values, r.Policy, r.Inside, r.Uses}, true
}

// reaches lists what the object of a change reaches by one of its sites. What an object inside of a VM runs or
// calls is the VM's own affair.
func (o *orderer) reaches(c *Change, by func(*Change) (site, bool)) []Reach {
	at, ok := by(c)
	if !ok {
		return nil
	}
	dir, vm := o.delta.dir, o.vmOf(c, by)
	var all []Reach
	for _, r := range slices.Concat(spec.Reaches(c.Kind, at.want, at.policy, dir), spec.ProviderReaches(at.provider.Type, at.settings, dir)) {
		entry := Reach{Address: c.Address, What: r.What, Text: r.Text}
		switch {
		case (r.What == spec.ReachCommand || r.What == spec.ReachServer) && vm != spec.Address{}:
			continue
		case r.What == spec.ReachPort: // folders and variables are this host's wherever the object is
			entry.On = vm
		}
		all = append(all, entry)
	}
	return all
}

// vmOf returns the VM that the object of a change is in by the sites of all objects around it; zero: it is in none. A job is where
// its workspace is.
func (o *orderer) vmOf(c *Change, by func(*Change) (site, bool)) spec.Address {
	for {
		at, _ := by(c)
		around := at.inside
		if work := workplace(c.Kind, at.uses); work != (spec.Address{}) {
			around = work
		}
		i, ok := o.index[around]
		if natures[around.Kind].runs || !ok {
			return around
		}
		c = &o.plan.Changes[i]
	}
}
