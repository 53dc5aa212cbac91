package planner

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Delta lists the changes that are needed, before they are put in order.
type Delta struct {
	Project  providers.Project
	Serial   uint64
	Changes  []Change            // by address; no-ops and those of Aside included
	Checks   []spec.Check        // those of check blocks first, then by address
	Findings []providers.Finding // sorted
	// Aside lists the addresses out of scope. The object of such an address inside of a VM is
	// released before the VM goes down. Nothing else is done with them.
	Aside map[spec.Address]bool

	dir        string                     // of the spec
	known      map[spec.Address]cty.Value // what Plan.Known says
	orphans    []orphan
	options    Options
	skips      bool                            // what cannot be read is left out
	refers     map[spec.Address][]spec.Address // by the spec
	dependents map[spec.Address][]spec.Address // the addresses that are left out together with an address
}

// Diff compares the spec, the state and the world. It is pure, and its error is
// a *ScopeError.
func Diff(c *spec.Config, s *state.Snapshot, w *World, o Options) (Delta, error) {
	d := newDiffer(c, s, w, o)
	all := d.addresses()
	var err error
	if d.scope, err = o.scope(c, s, all); err != nil {
		return Delta{}, err
	}
	for a := range w.along {
		d.scope[a] = d.scope[w.systems[w.placed[a]].Inside]
	}
	d.scopeStaleLocks(usesOf(c, s, all))
	for _, a := range dependenciesFirst(all, d.decideAfter(all)) {
		noticed := len(d.findings)
		change := d.change(a)
		change.Spec = cmp.Or(change.Spec, change.specDigest())
		d.used[a], d.decided[a] = usedAs(change, d.scope[a]), &change
		if (o.Rest != nil || o.Heal) && !d.scope[a] { // the round before said it already, or only what is healed counts
			d.findings = d.findings[:noticed]
		}
	}
	d.capacity(all)
	d.orphans()
	d.hintRenames(all)
	checks := d.checks()
	delta := Delta{
		Project: o.Project, Serial: s.Serial, Checks: checks, Findings: d.findings, Aside: map[spec.Address]bool{},
		dir: c.Dir, known: d.known, orphans: d.orphaned, options: o, skips: c.Settings.SkipsUnread, refers: refersOf(c), dependents: dependents(c, s, all, o.Destroy),
	}
	delta.Changes = slices.Grow(delta.Changes, len(all))
	for _, a := range all {
		delta.Changes = append(delta.Changes, *d.decided[a])
		if !d.scope[a] {
			delta.Aside[a] = true
		}
	}
	slices.SortFunc(delta.Findings, compareFindings)
	return delta, nil
}

func newDiffer(c *spec.Config, s *state.Snapshot, w *World, o Options) differ {
	d := differ{
		config: c, state: s, world: w, options: o, observations: w.Observations(s, o.Project), imports: importsOf(c, o),
		declared: map[declaredKey][]condition.Declared{}, known: map[spec.Address]cty.Value{}, objects: map[*providers.Object]bool{}, recorded: map[providers.ID]spec.Address{},
		used: map[spec.Address]providers.Used{}, decided: map[spec.Address]*Change{},
		begun: map[spec.Address][]state.Entry{}, books: map[spec.Address]*book{},
	}
	for a, r := range s.Records {
		d.recorded[providers.ID(r.ID)] = a
	}
	for _, e := range s.Interrupted {
		d.begun[e.Address] = append(d.begun[e.Address], e)
	}
	return d
}

type differ struct {
	config       *spec.Config
	state        *state.Snapshot
	world        *World
	options      Options
	known        map[spec.Address]cty.Value // the values of an address that references may rely on
	objects      map[*providers.Object]bool // the objects that some address accounts for
	recorded     map[providers.ID]spec.Address
	used         map[spec.Address]providers.Used // the object at each address, for the resources that use it
	observations *Observations
	declared     map[declaredKey][]condition.Declared
	scope        map[spec.Address]bool
	imports      map[spec.Address]providers.ID // the user's name for each object to import
	decided      map[spec.Address]*Change
	books        map[spec.Address]*book // of the networks whose addresses were looked at; nil: it has none
	begun        map[spec.Address][]state.Entry
	changes      []Change
	orphaned     []orphan
	findings     []providers.Finding
}

func (d *differ) addresses() []spec.Address {
	all := map[spec.Address]bool{}
	for a := range d.world.placed {
		all[a] = !d.isLeft(a)
	}
	for _, e := range d.state.Interrupted {
		all[e.Address] = true
	}
	maps.DeleteFunc(all, func(_ spec.Address, is bool) bool { return !is })
	return slices.SortedFunc(maps.Keys(all), spec.Address.Compare)
}

// change decides about one address. What it uses has been decided before.
func (d *differ) change(a spec.Address) Change {
	resource, inSpec := d.planned(a)
	record, recorded := d.state.Records[a]
	c := Change{Change: providers.Change{Address: a, Kind: a.Kind, Action: providers.NoOp}, Place: Place{System: d.world.placed[a]}, lets: d.lets(a)}
	d.interrupted(a)
	if c.System == "" { // only the journal of an earlier run knows it
		return c
	}
	if recorded {
		c.Record, c.Provider, c.Needs = &record, record.Provider, record.Uses
		c.Prior, c.Policy, c.Generation, c.Replaced = record.Values, record.Policy, record.Generation, record.Replaced
		c.Was = record.Was
	}
	if inSpec {
		resource, c.mistake = d.resolve(resource)
		c.Policy = resource.Policy
	}
	if recorded {
		var unsure []string
		if record.Values, unsure = d.recalled(&c, record, resource.Want); len(unsure) > 0 && inSpec && !d.options.Destroy {
			c.Warnings = append(c.Warnings, unsureWarning(unsure))
		}
		c.Prior = record.Values
	}
	if inSpec {
		if recorded {
			resource = resource.WithRead(record.Values)
		}
		off := !ctyread.True(resource.Want, "running")
		if recorded && d.isPower() {
			resource.Want, resource.Uses, resource.Plain = recordedWant(resource.Want, record.Values), record.Uses, false
			resource.Unread = nil
		}
		if recorded && d.options.Heal {
			resource = healed(resource, record.Policy, off)
		}
		if recorded && d.options.Revert[a] {
			resource.Want, resource.Uses, resource.Plain, resource.Policy = recordedWant(resource.Want, record.Values), record.Uses, false, record.Policy
			resource.Unread = nil
		}
		c.Want, c.Needs, c.Policy = &resource, resource.Uses, resource.Policy
		stays := recorded && d.world.wanted[a] != c.System && record.Inside == resource.Inside // an object does not move to another system
		if !stays {
			c.Provider = resource.Provider
		}
		c.Change.Want = resource.Want
		if running, ok := d.options.Running[a]; ok {
			c.Change.Want = with(resource.Want, "running", cty.BoolVal(running))
		}
	}
	c.Inside = d.world.systems[c.System].Inside // also of an object that is wanted elsewhere
	c.Conditions = d.conditionsOf(&c)
	c.Around = d.around(c.Inside)
	c.prevented = isPrevented(c.Policy) && !d.options.Allow.Destroy[a] && !d.ends(a)
	c.Uses = d.uses(c.Needs)
	c.Name = d.name(a)
	wanted := inSpec && !d.options.Destroy
	system := d.world.systems[c.System]
	c.Settings = system.Settings
	if !inSpec && !recorded {
		c.Provider = system.Ref
	}
	if d.asleep(&c, system, wanted) {
		return c
	}
	seen := d.observations.At(a, c.Name)
	if seen.Unknown != nil {
		return d.unknown(c, seen)
	}
	d.choose(&c, seen)
	if wanted && d.imported(&c, &seen) {
		if d.isPower() && c.importing {
			d.refuseImport(&c, "it is not imported yet", providers.Vmctl("apply"))
		}
		d.lacksText(&c)
		d.withoutAddress(&c)
		d.account(&c, seen)
		d.conditions(&c)
		d.lacking(&c)
		d.holders(&c)
		return c
	}
	c.Object = seen.Object
	c.Busy = d.busy(&c)
	c.along = d.world.along[a]
	c.Discards = d.options.Allow.Dirty[a] || c.along && d.options.Allow.Dirty[c.Inside]
	d.account(&c, seen)
	c.observed = (c.Inside != spec.Address{}) && isOurs(seen)
	c.mayHold = d.mayHold(&c)
	d.decide(&c, seen, Stand(seen.Marking, seen.Recorded, wanted), inSpec)
	if wanted {
		d.mistaken(&c)
		d.withoutAddress(&c)
		d.lacksText(&c)
		d.conditions(&c)
		d.jobBlocked(&c)
	}
	if system.sleep == unmade && d.staysOff(c.Around) { // it is not made either: nobody can rely on its values
		delete(d.known, a)
	}
	d.lacking(&c)
	d.holders(&c)
	return c
}

// staysOff reports whether one of some objects is not to run.
func (d *differ) staysOff(all []spec.Address) bool {
	return slices.ContainsFunc(all, func(a spec.Address) bool {
		_, runs := spec.AttrAt(a.Kind, "running")
		return runs && !startsUp(d.config, d.options, a)
	})
}

// around returns an address and those of the objects that it is inside of. They have been decided
// before.
func (d *differ) around(a spec.Address) []spec.Address {
	if a == (spec.Address{}) {
		return nil
	}
	all := []spec.Address{a}
	if c := d.decided[a]; c != nil {
		all = append(all, c.Around...)
	}
	return all
}

// isPower reports whether a command asks for another run state of VMs or containers, or for other keys,
// and for nothing else: an edit of a block is for an apply to make.
func (d *differ) isPower() bool {
	return d.options.Heal || len(d.options.Running)+len(d.options.States)+len(d.options.Rekey) > 0
}

// recordedWant returns the attributes of want with the values that were applied, where there are
// any.
func recordedWant(want, applied cty.Value) cty.Value {
	kept := want.AsValueMap()
	for name := range kept {
		if v := ctyread.Attr(applied, name); v != cty.NilVal {
			kept[name] = v
		}
	}
	return cty.ObjectVal(kept)
}

func (d *differ) decide(c *Change, seen Observation, standing Standing, inSpec bool) {
	if d.options.Unlock[c.Address] {
		d.unlock(c, seen.System, standing)
		return
	}
	if why := runStateUnknown(seen.Object); why != "" && standing != Stranger && standing != Clone {
		c.Blocked = unread(providers.Refuse("its run state could not be read: "+why, nil))
		return
	}
	switch standing {
	case Wanted:
		if on, asked := d.options.Running[c.Address]; asked && !on {
			c.Reason = "it does not exist: there is nothing to stop"
			return
		}
		if state, asked := d.options.States[c.Address]; asked && state != stateRunning {
			c.Reason = "it does not exist: there is nothing to stop"
			return
		}
		if d.options.Restart[c.Address] {
			c.Reason = "it does not exist: there is nothing to restart"
			return
		}
		if d.options.Rekey[c.Address] {
			c.Reason = "it does not exist: it gets its keys when it is made"
			return
		}
		d.create(c)
	case Managed:
		d.manage(c)
	case Adoptee:
		d.takeBack(c)
	case Unwanted:
		d.endOrLetGo(c)
	case Orphan:
		if inSpec || c.Record != nil || d.lets(c.Address) || d.ends(c.Address) || d.goesAlong(c) { // ours for sure; only its record is lost, or names an object before it
			d.adopt(c)
			d.endOrLetGo(c)
			return
		}
		c.Action = providers.NoOp
		delete(d.objects, c.Object) // it is reported
	case Stranger, Clone:
		d.foreign(c, seen, standing)
	case LetGo:
		c.Action, c.Reason = providers.Forget, "it no longer exists"
		c.ID = providers.ID(c.Record.ID)
		if _, exists := d.observations.indexes[c.System].byID[idKey{c.Kind, c.ID}]; exists || seen.Object != nil {
			c.Reason, c.Object, c.ID = "its object is not vmctl's any more", nil, ""
		}
	case NotOurs:
		c.Action, c.Object = providers.NoOp, nil
	default:
		panic("unknown standing " + string(standing))
	}
}

func runStateUnknown(o *providers.Object) string {
	if o == nil || o.Running != nil {
		return ""
	}
	return o.Unreadable["running"]
}

// resolve fills in computed attributes of other resources that this plan does not change. The
// error is a mistake that shows only with these values.
func (d *differ) resolve(r spec.Resource) (spec.Resource, error) {
	if r.Plain || r.Want.IsWhollyKnown() {
		return r, nil
	}
	resolved, diags := d.config.Resolve(r.Address, d.known)
	if diags.HasErrors() {
		return r, errors.New(strings.ReplaceAll(diags.Errs()[0].Error(), d.config.Dir+string(filepath.Separator), ""))
	}
	return resolved, nil
}

// mistaken blocks a change whose block has a mistake that shows only with values of other
// objects: nothing goes down for what cannot be made.
func (d *differ) mistaken(c *Change) {
	if c.mistake != nil && c.Blocked == nil && !d.isPower() {
		c.Blocked = &Block{
			Cause: CauseMistake,
			Problem: providers.Refuse(
				c.mistake.Error(),
				providers.Say(fmt.Sprintf("mend the block of %s, or what it refers to", c.Address))),
		}
	}
}

// lacksText blocks a change whose block names a text that was not read: no step is made from half a block. An object
// that was applied keeps its text where nobody tried to read it.
func (d *differ) lacksText(c *Change) {
	if c.Want == nil || c.Want.Unread == nil || c.Blocked != nil {
		return
	}
	unread := c.Want.Unread
	next := providers.Vmctl("validate")
	if unread.Skipped {
		if c.Record != nil {
			return
		}
		next = providers.Vmctl("apply")
		if _, now := d.options.Imports[c.Address]; now {
			next = providers.Say("write an import block for " + c.Address.String() + ", and let apply import it")
		}
	}
	c.Blocked = &Block{Cause: CauseMissing, Problem: providers.Refuse(unread.Error(), next)}
}

func (d *differ) name(a spec.Address) string {
	return nameFor(d.config, d.state, d.options.Project, a)
}

func (d *differ) unknown(c Change, seen Observation) Change {
	c.Action, c.unread = providers.NoOp, true
	c.Blocked = unread(seen.Unknown.Within("%s could not be read", seen.System))
	d.find(providers.Finding{
		Kind: providers.FindUnknown, Address: c.Address, Object: c.Name,
		Evidence: []string{seen.Unknown.Error()}, Action: "left alone: what cannot be read is never changed", Next: seen.Unknown.Next,
	})
	return c
}

func (d *differ) find(f providers.Finding) { d.findings = append(d.findings, f) }

func compareFindings(a, b providers.Finding) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Address.Compare(b.Address), cmp.Compare(a.Object, b.Object),
		slices.Compare(a.Evidence, b.Evidence))
}

// dependenciesFirst sorts addresses so that each comes after what it uses, else
// by address. The spec and the records have no cycles of their own; a cycle
// between the two is cut where it closes.
func dependenciesFirst(all []spec.Address, uses map[spec.Address][]spec.Address) []spec.Address {
	var sorted []spec.Address
	seen := map[spec.Address]bool{}
	var visit func(spec.Address)
	visit = func(a spec.Address) {
		if seen[a] {
			return
		}
		seen[a] = true
		for _, b := range uses[a] {
			if _, exists := uses[b]; exists {
				visit(b)
			}
		}
		sorted = append(sorted, a)
	}
	for _, a := range all {
		visit(a)
	}
	return sorted
}
