package planner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

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
	return hex.EncodeToString(sum[:6])
}

// reaches lists what the resource of a change reaches by its block and its provider, and did not by its record. A record
// without an object was only reserved.
func (d Delta) reaches(c *Change) []spec.Reached {
	r := c.Want
	all := slices.Concat(spec.Reaches(c.Kind, r.Want, r.Policy, d.dir), spec.ProviderReaches(r.Provider.Type, c.Aim().Settings, d.dir))
	if c.Record == nil || c.Record.Reserved {
		return all
	}
	before := slices.Concat(spec.Reaches(c.Kind, c.Record.Values, c.Record.Policy, d.dir), spec.ProviderReaches(c.Record.Provider.Type, c.Record.Settings, d.dir))
	return slices.DeleteFunc(all, func(r spec.Reached) bool { return slices.Contains(before, r) })
}

// findReach lists what the changes of the plan reach. What is blocked reaches nothing, and a command inside of a VM is its
// own affair.
func (o *orderer) findReach() {
	p := o.plan
	on := map[spec.Address]spec.Address{} // the VM that an object is in
	for i := range p.Changes {
		c := &p.Changes[i]
		on[c.Address] = vmOf(c.Aim().Around)
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		_, late := o.late[i] // a later round plans it
		idle := c.Action == providers.NoOp && len(c.Policies) == 0
		if c.Want == nil || late || idle || c.Blocked != nil || c.Action == providers.Destroy || c.Action == providers.Forget || o.delta.Aside[c.Address] {
			continue
		}
		vm := on[c.Address]
		if c.Kind == spec.Job { // it runs where its workspace is
			for _, used := range c.Needs {
				vm = cmp.Or(vm, on[used])
			}
		}
		for _, r := range o.delta.reaches(c) {
			if r.What == spec.ReachCommand && vm != (spec.Address{}) {
				continue
			}
			of := vm
			if r.What != spec.ReachPort { // folders and variables are this host's wherever the workspace is
				of = spec.Address{}
			}
			p.Reach = append(p.Reach, Reach{Address: c.Address, What: r.What, On: of, Text: r.Text})
		}
	}
}

// vmOf returns the first VM of some objects; zero: there is none.
func vmOf(all []spec.Address) spec.Address {
	for _, a := range all {
		if a.Kind == spec.VM {
			return a
		}
	}
	return spec.Address{}
}
