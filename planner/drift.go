package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// behind notes a record that is older than the mark: a restored backup.
func (d *differ) behind(c *Change) {
	if !d.isBehind(c) {
		return
	}
	d.find(providers.Finding{
		Kind: providers.FindStateBehind, Address: c.Address, Object: c.Name,
		Evidence: []string{fmt.Sprintf("the record is of generation %d, the object's mark of %d: a state from before was restored, or another data directory is in use", c.Record.Generation, c.Object.Owner.Generation)},
		Action:   "what the system shows counts",
	})
}

// isBehind reports whether a vmctl with another state has changed the object since the record was
// written.
func (d *differ) isBehind(c *Change) bool {
	return c.Record != nil && c.Object != nil && c.Record.ID == string(c.Object.ID) && !c.Record.Reserved &&
		markedGeneration(c.Object) > c.Record.Generation && !d.wasInterrupted(c.Address)
}

// drift notes managed attributes and run states that differ from what was
// applied. shown holds the prior attributes with those that the system shows in their place.
func (d *differ) drift(c *Change, shown overlaid, attrs map[string]providers.Attribute) {
	if c.Record == nil || c.Record.Reserved || c.Record.ID != string(c.Object.ID) {
		return
	}
	c.Departures = d.drifted(c, shown, attrs)
	next := []providers.Advice(nil)
	applied := ctyread.KnownAttr(c.Prior, "running")
	if o := c.Object; o.Running != nil && applied != cty.NilVal && applied.True() != *o.Running {
		text := fmt.Sprintf("it is %s, and vmctl left it %s", o.State, map[bool]string{true: "running", false: "off"}[applied.True()])
		if !*o.Running && d.wasDestroyed(c.Address) {
			text, next = fmt.Sprintf("it is %s: an interrupted destroy left it so", o.State), destroyGoesOn()
		}
		c.Departures = append(c.Departures, Departure{Path: "running", Is: cty.BoolVal(*o.Running), Applied: applied, Evidence: text})
	}
	if len(c.Departures) > 0 {
		var evidence []string
		for _, departure := range c.Departures {
			evidence = append(evidence, departure.Evidence)
		}
		d.find(providers.Finding{Kind: providers.FindDrift, Address: c.Address, Object: c.Object.Name, Evidence: evidence, Next: next})
	}
}

// drifted returns the managed attributes that something other than vmctl changed: those of the
// running object, and those that its next start will use.
func (d *differ) drifted(c *Change, shown overlaid, attrs map[string]providers.Attribute) []Departure {
	if d.isBehind(c) {
		return nil
	}
	changed := func(shown overlaid) []providers.Edit {
		if !shown.differs {
			return nil
		}
		all := slices.DeleteFunc(differences(shown.Value, c.Prior, attrs), func(e providers.Edit) bool {
			unshown := e.Before.RawEquals(e.After) // a sensitive value that is only recorded
			return ctyread.Attr(c.Change.Want, firstOf(e.Path)) == cty.NilVal || c.ignores(e.Path) || unshown
		})
		for i, e := range all { // its spec may say now that it is sensitive
			wanted := at(c.Change.Want, e.Path)
			all[i].Before, all[i].After = marked(e.Before, wanted), marked(e.After, wanted)
		}
		return all
	}
	var all []Departure
	if applied, is := c.Record.Name, c.Object.Name; applied != is {
		all = append(all, Departure{
			Path: "name", Is: cty.StringVal(is), Applied: cty.StringVal(applied),
			Evidence: fmt.Sprintf("its name is %q, and vmctl applied %q", is, applied),
		})
	}
	tell := func(e providers.Edit, is string) {
		all = append(all, Departure{
			Path: e.Path, Is: e.Before, Applied: e.After,
			Evidence: fmt.Sprintf("%s %s %s, and vmctl applied %s", e.Path, is, show(c.Kind, e.Path, e.Before), show(c.Kind, e.Path, e.After)),
		})
	}
	running := shown
	if c.Object.Live != cty.NilVal {
		running = overlay(c.Prior, c.Object.Now())
	}
	now := changed(running)
	for _, e := range now {
		tell(e, "is")
	}
	if c.Object.Live == cty.NilVal {
		return all
	}
	for _, e := range changed(shown) {
		runs := slices.ContainsFunc(now, func(n providers.Edit) bool { return n.Path == e.Path })
		if !runs && !same(e.Before, at(c.Change.Want, e.Path)) { // an earlier run wrote down what is wanted, and did not come to the restart
			tell(e, "would be, once it starts again,")
		}
	}
	return all
}

func firstOf(path string) string {
	first, _, _ := strings.Cut(path, ".")
	return first
}

// show writes a value the way a spec would.
func show(kind spec.Kind, path string, v cty.Value) string { return spec.FormatValue(kind, path, v) }

// interrupted notes steps of an earlier run that did not end.
func (d *differ) interrupted(a spec.Address) {
	for i, e := range d.begun[a] {
		if e.Destroys() && slices.ContainsFunc(d.begun[a][i+1:], func(later state.Entry) bool { return later.Destroys() }) {
			continue // the last step of a destruction says enough
		}
		since := e.At.UTC().Format("2006-01-02 15:04:05 MST")
		if d.options.Held {
			d.find(providers.Finding{
				Kind: providers.FindHeldLock, Address: a, Object: e.Name,
				Evidence: []string{fmt.Sprintf("another run began to %s it at %s and is at it", e.Operation(), since)},
				Action:   "what is planned here may be done by then",
			})
			continue
		}
		evidence := []string{fmt.Sprintf("an earlier run began to %s it at %s and did not end", e.Operation(), since)}
		if strings.HasPrefix(e.Op, providers.OpProvision("")) && !e.Destroys() {
			evidence[0] = fmt.Sprintf("an earlier run began %s at %s and did not see its end", e.Op, since)
		}
		for _, l := range e.Leaves {
			evidence = append(evidence, "it may have left: "+l)
		}
		f := providers.Finding{Kind: providers.FindInterrupted, Address: a, Object: e.Name, Evidence: evidence, Action: "planned again from what is really there"}
		if e.Destroys() && !d.options.Destroy {
			f.Action, f.Next = "", destroyGoesOn()
		}
		d.find(f)
	}
}

// destroyGoesOn returns the advice for an address whose destruction was interrupted.
func destroyGoesOn() []providers.Advice {
	return append(providers.SayVmctl("to go on with that: ", "destroy"), providers.SayVmctl("to make it what the files say: ", "apply")...)
}

// wasDestroyed reports whether the destruction of an address was interrupted.
func (d *differ) wasDestroyed(a spec.Address) bool {
	return slices.ContainsFunc(d.begun[a], func(e state.Entry) bool { return e.Destroys() })
}

// isHalfDeleted reports whether an earlier run began to delete this very object and did not end.
// Parts of the object may be gone by then, and no refusal keeps it. While that run goes on, and
// if somebody changed the object since, the journal is no proof.
func (d *differ) isHalfDeleted(c *Change) bool {
	return c.Object != nil && c.Record != nil && !c.Record.Reserved && c.Record.ID == string(c.Object.ID) &&
		markedGeneration(c.Object) <= c.Record.Generation && d.beganToDelete(c)
}

// beganToDelete reports whether an earlier run, which has ended, began to delete the object of a change, recorded or not.
func (d *differ) beganToDelete(c *Change) bool {
	return !d.options.Held && slices.ContainsFunc(d.begun[c.Address], func(e state.Entry) bool { return e.Deletes() && e.ID == string(c.Object.ID) })
}

// wasLetGo reports whether an earlier run began to let go of the object of an address.
func (d *differ) wasLetGo(a spec.Address) bool {
	return slices.ContainsFunc(d.begun[a], func(e state.Entry) bool { return e.How == state.LettingGo })
}

func (d *differ) wasInterrupted(a spec.Address) bool {
	return len(d.begun[a]) > 0
}

// account records that an address accounts for an object, and adds the findings that the provider
// has about it. An object that only has the address's name does not count. The finding that a VM
// crashed is dropped if the spec wants the VM off.
func (d *differ) account(c *Change, seen Observation) {
	o := seen.Object
	if o == nil || !seen.Recorded && MarkingOf(o, d.options.Project) == Ours && d.world.addressOf(o) != c.Address {
		return
	}
	if _, imported := d.imports[c.Address]; !imported && Stand(seen.Marking, seen.Recorded, true) == Stranger { // it only has the name
		return
	}
	d.objects[o] = true
	for _, f := range o.Findings {
		if f.Kind == providers.FindCrashed && c.Change.Want != cty.NilVal && !d.wantsRunning(c) {
			continue // the files want it off
		}
		f.Address, f.Object = c.Address, o.Name
		d.find(f)
	}
}

// orphans reports objects that bear our mark and belong to no address.
func (d *differ) orphans() {
	for _, system := range d.world.Systems() {
		if d.options.Rest != nil && (system.Inside == spec.Address{}) { // the round before said it already
			continue
		}
		for i := range system.Inventory.Objects {
			o := &system.Inventory.Objects[i]
			if d.objects[o] {
				continue
			}
			switch MarkingOf(o, d.options.Project) {
			case Ours:
				if d.isLeft(o.Owner.Address) {
					continue
				}
				if d.lets(o.Owner.Address) {
					d.find(providers.Finding{
						Kind: providers.FindRetained, Address: o.Owner.Address, Object: o.Name,
						Evidence: []string{describe(system, o) + " bears our mark, and a removed block let go of it"},
						Action:   "left alone",
					})
					continue
				}
				d.orphan(system, o)
			case Copied:
				d.find(providers.Finding{
					Kind: providers.FindCopy, Address: o.Owner.Address, Object: o.Name,
					Evidence: []string{fmt.Sprintf("%s bears the mark of %s", describe(system, o), o.Owner.Of)},
					Action:   "left alone: a copy is not vmctl's",
				})
			case Unmarked, Foreign:
				d.unmanaged(system, o)
			case Absent, Moved:
			}
		}
	}
}
