package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

func (d *differ) create(c *Change) {
	c.Action, c.Reason = providers.Create, "it does not exist"
	c.Generation++
	place := d.world.systems[c.System].place()
	if c.Record != nil {
		c.Prior = cty.NilVal
		c.System, c.Settings = d.wantedSystem(c)
		c.Inside = c.Want.Inside
		c.Around = d.around(c.Inside)
		if !d.isRead(c) {
			return
		}
		c.Name = cmp.Or(nameOf(c.Change.Want), c.Name)
	}
	if c.Record != nil && !c.Record.Reserved {
		c.Reason = "it is gone: made again"
		d.find(providers.Finding{
			Kind: providers.FindMissing, Address: c.Address, Object: c.Name,
			Evidence: []string{fmt.Sprintf("the state records %s, and %s does not list it", c.Record.ID, place)},
			Action:   "made again",
		})
	}
	d.chooseID(c)
	c.Name = d.freeName(c)
	c.scripts = d.scripts(c)
	c.Was = slices.DeleteFunc(slices.Clone(c.Was), d.isTakenAgain) // no mark names one any more
	d.known[c.Address] = lasting(c, cty.NilVal, d.attributes(c))
}

// isTakenAgain reports whether an address, which another one had before, is that of a resource or of a record.
func (d *differ) isTakenAgain(a spec.Address) bool {
	_, described := d.config.Resource(a)
	_, recorded := d.state.Records[a]
	return described || recorded
}

// isRead reports whether the system in which a change is to make its object was read. If it was
// not, isRead blocks the change or lets it do nothing: the object may exist there.
func (d *differ) isRead(c *Change) bool {
	system := d.world.systems[c.System]
	switch why := system.unread(); {
	case system.sleep != "" && system.sleep != unmade:
		c.Action, c.Reason = providers.NoOp, ""
	case why != nil:
		c.Blocked = unread(why.Within("%s could not be read", system))
	default:
		return true
	}
	return false
}

func (d *differ) wantedSystem(c *Change) (string, cty.Value) {
	key := d.world.wanted[c.Address]
	return key, d.world.systems[key].Settings
}

// adopt takes the attributes that the system shows as applied, and those of the spec where it
// shows none.
func (d *differ) adopt(c *Change) {
	c.Prior = d.asApplied(c)
	c.Generation = max(c.Object.Owner.Generation, 1)
	c.Name = c.Object.Name
	if from := c.Object.Owner.Address; from != c.Address {
		c.Was = append(slices.Clip(c.Was), from)
	}
	for n, next := c.Replaced, 1; n <= c.Replaced+next; n++ { // a replacement that was cut short has made the next one
		id := ObjectID(d.options.Project, c.Address, n)
		if id == c.Object.ID {
			c.Replaced = n
			break
		}
		if _, forgotten := d.state.Forgotten[string(id)]; forgotten { // an ID that was skipped
			next++
		}
	}
	if natures[c.Kind].isFound { // it has none that vmctl applies
		return
	}
	c.Warnings = append(c.Warnings, "its record was lost: attributes that the system does not report are assumed to match the spec")
}

// manage compares an object that is ours with its spec, and decides how it changes.
func (d *differ) manage(c *Change) {
	o := c.Object
	c.ID, c.booted = o.ID, d.world.systems[c.System].Inventory.Booted
	if c.Record != nil && c.Record.Reserved && c.Record.ID == string(o.ID) {
		c.Prior = overlay(c.Change.Want, o.Attrs).Value
	}
	on := o.Running != nil && *o.Running
	wantOn := d.wantsRunning(c)
	attrs := d.attributes(c)
	shown := overlay(c.Prior, o.Attrs)
	before := shown.Value
	c.ignore(before)
	d.moves(c)
	stays := (on || !stopped(o)) && wantOn
	c.Edits = d.usedEdits(c, attrs, stays)
	if !d.isPower() {
		pending := edits(before, c.Change.Want, attrs, stays)
		if stays && o.Live != cty.NilVal {
			pending = asItRuns(pending, edits(overlay(before, o.Live).Value, c.Change.Want, attrs, stays))
		}
		c.Edits = joined(pending, c.Edits)
		c.Edits = joined(c.Edits, d.foundEdits(c))
		c.Edits = append(c.Edits, d.nameEdit(c)...)
		c.Edits = append(c.Edits, d.providerEdit(c)...)
		c.Mark = markEdit(c)
		d.switched(c, before)
	}
	c.Edits = append(c.Edits, d.stateEdit(c, before, attrs)...)
	c.spend()
	if d.options.Rekey[c.Address] {
		c.Rekey = rekeying(d.typeOf(c), stays)
	}
	slices.SortFunc(c.Edits, func(a, b providers.Edit) int { return cmp.Compare(a.Path, b.Path) })
	c.Applies = maximum(c.alterations())
	d.drift(c, shown, attrs)
	if c.newPolicy = c.policyChanged(); c.newPolicy {
		c.Policies = PolicyEdits(c.Kind, c.Record.Policy, c.Policy)
	}
	c.scripts = d.scripts(c)
	c.Due = d.due(o, c.Address)
	c.Unready = on && wantOn && d.unready(c) && (!d.options.NoWait || c.runsScripts())
	c.tellScripts(on && wantOn)
	d.chooseAction(c, on, wantOn)
	c.valuesBehind = changesRunState(c.Action) && !d.isPower() && c.valuesAreBehind(attrs)
	if c.with = d.replacedAround(c); c.To == nil && (c.with != spec.Address{}) {
		c.Action, c.Reason, c.Altered = providers.ReplaceIt, fmt.Sprintf("%s is replaced: made again in the new one", c.with), false
		c.Mark, c.Rekey, c.Applies = nil, nil, ""
		for i := range c.Edits {
			c.Edits[i].Verdict = providers.Verdict{Applies: providers.Replace, Reason: "it is made again"}
		}
	}
	c.Conditional = d.isConditional(c)
	c.Generation = max(c.Generation, markedGeneration(o))
	if c.Spec = c.specDigest(); c.isEffective() {
		c.Generation++
	}
	if c.Action == providers.ReplaceIt {
		c.Replaced++
		d.chooseID(c)
		c.Name = cmp.Or(nameOf(c.Change.Want), c.Name)
	} else {
		c.Name = o.Name // somebody may have renamed it
	}
	d.behind(c)
	d.unreadable(c)
	d.ceilings(c)
	d.protect(c)
	d.known[c.Address] = lasting(c, before, attrs)
}

// switched lets every edit of an object that vmctl only connects to apply in place, if nothing inside of it is managed before or
// after the change: what is inside stays as it is. It has no say about one that goes elsewhere, or that is refused.
func (d *differ) switched(c *Change, before cty.Value) {
	if !natures[c.Kind].isFound || c.To != nil || inert(c.Kind, before) == "" && inert(c.Kind, c.Change.Want) == "" {
		return
	}
	for i := range c.Edits {
		if c.Edits[i].Verdict.Applies == providers.Refused {
			continue
		}
		c.Edits[i].Verdict = providers.Verdict{Applies: providers.Live, Reason: "what is inside of it stays as it is"}
	}
}

// moves notes that an object is to be inside of another object than it is, or no longer on this host itself, or there again: it is
// removed here and made again there.
func (d *differ) moves(c *Change) {
	if d.isPower() || c.Want == nil || c.Want.Inside == c.Inside {
		return
	}
	system, settings := d.wantedSystem(c)
	c.To = &Place{System: system, Settings: settings, Inside: c.Want.Inside, Around: d.around(c.Want.Inside)}
	if why := d.world.systems[system].unseen; why != nil && c.Blocked == nil {
		c.Blocked = unread(why.Within("%s could not be read", d.world.systems[system]))
	}
}

// replacedAround returns the object around that of a change which the plan replaces. Zero: there is
// none.
func (d *differ) replacedAround(c *Change) spec.Address {
	for _, a := range c.Around {
		above := d.decided[a]
		if above == nil || above.Action != providers.ReplaceIt || above.Blocked != nil || !d.scope[a] {
			continue
		}
		if (above.with != spec.Address{}) {
			return above.with
		}
		return a
	}
	return spec.Address{}
}

// isConditional reports whether a change restarts its object only for values that are not known
// yet: they may turn out to be the old ones.
func (d *differ) isConditional(c *Change) bool {
	if c.Action != providers.RestartIt || d.options.Restart[c.Address] || c.Rekey != nil && c.Rekey.Applies == providers.Restart {
		return false
	}
	return !slices.ContainsFunc(c.Edits, func(e providers.Edit) bool {
		return e.Verdict.Applies == providers.Restart && e.After.IsWhollyKnown()
	})
}

// Settled reports whether a change that is Conditional need not take its object down,
// now that want is known.
func (c *Change) Settled(want cty.Value) bool {
	for _, e := range c.Edits {
		if e.Verdict.Applies == providers.Restart && !same(e.Before, at(want, e.Path)) {
			return false
		}
	}
	return true
}

// at returns the part of a value at a dotted path.
func at(v cty.Value, path string) cty.Value {
	for name := range strings.SplitSeq(path, ".") {
		v = ctyread.Attr(v, name)
	}
	return v
}

// lasting returns the values of an object that others may rely on during its change. A restart
// keeps the stable values, and a new object has the ID and the name that were chosen for it.
func lasting(c *Change, before cty.Value, attrs map[string]providers.Attribute) cty.Value {
	switch c.Action {
	case providers.NoOp, providers.Update, providers.Adopt, providers.Import:
		return with(before, "name", cty.StringVal(c.Object.Name))
	case providers.ReplaceIt, providers.Create:
		return chosen(c, attrs)
	case providers.RestartIt, providers.Start, providers.Stop, providers.Recover, providers.Destroy, providers.Forget, providers.Release:
		return stable(c, before, attrs)
	default:
		panic("unknown action " + string(c.Action))
	}
}

// chosen returns the values of an object that are known before it is made.
func chosen(c *Change, attrs map[string]providers.Attribute) cty.Value {
	want := spec.Hidden(c.Change.Want)
	all := map[string]cty.Value{"id": cty.StringVal(string(c.ID)), "name": cty.StringVal(c.Name)}
	for name, a := range attrs {
		if a.Computed && a.Lasts != nil && all[name] == cty.NilVal {
			if v := a.Lasts(cty.NilVal, want); v != cty.NilVal {
				all[name] = v
			}
		}
	}
	return cty.ObjectVal(all)
}

// stable returns the values of an object that a restart keeps.
func stable(c *Change, before cty.Value, attrs map[string]providers.Attribute) cty.Value {
	want := spec.Hidden(c.Change.Want)
	all := map[string]cty.Value{"name": cty.StringVal(c.Object.Name)}
	for name, v := range parts(before) {
		if a, ok := attrs[name]; ok && a.Computed && a.Lasts != nil {
			all[name] = a.Lasts(v, want)
		}
	}
	return cty.ObjectVal(all)
}

// attributes returns the attributes that the provider type supports for the kind of a change.
func (d *differ) attributes(c *Change) map[string]providers.Attribute {
	return d.typeOf(c).Kinds[c.Kind]
}

// typeOf returns the type of the provider that makes a change.
func (d *differ) typeOf(c *Change) providers.Type {
	return d.options.Types.Of(c.Provider.Type, c.Kind, c.Aim().Inside)
}

func (d *differ) wantsRunning(c *Change) bool {
	return ctyread.True(c.Change.Want, "running")
}

func (d *differ) chooseAction(c *Change, on, wantOn bool) {
	down := c.Object.Running != nil && !on && stopped(c.Object)
	switch {
	case c.Applies == providers.Refused:
		c.Action, c.Reason, c.Altered = providers.Update, because(c.alterations(), providers.Refused), true
	case d.options.Replace[c.Address]:
		c.Action, c.Reason = providers.ReplaceIt, "a replacement was asked for"
	case c.Applies == providers.Replace:
		c.Action, c.Reason, c.Altered = providers.ReplaceIt, because(c.alterations(), providers.Replace), true
	case c.To != nil: // its record was never finished: what it was made in is not known as an edit
		c.Action, c.Reason, c.Altered = providers.ReplaceIt, fmt.Sprintf("it is inside of %s, and wanted inside of %s", c.Inside, c.To.Inside), true
	case c.Object.Running != nil && !wantOn && !down:
		c.Action, c.Reason = providers.Stop, "it runs"
		if !on {
			c.Reason = "it is " + c.Object.State
		}
		c.Reason += ", and " + d.whyOff(c.Address)
	case wantOn && !on:
		c.Action, c.Reason = providers.Start, "it is "+c.Object.State
	case d.options.Restart[c.Address] && (on || isUpByState(c.Object)):
		c.Action, c.Reason = providers.RestartIt, "a restart was asked for"
	case c.Applies == providers.Restart:
		c.Action, c.Reason, c.Altered = providers.RestartIt, because(c.alterations(), providers.Restart), true
	case c.Alters():
		c.Action, c.Reason, c.Altered = providers.Update, because(c.alterations(), providers.Live), true
	case partial(c.Object):
		c.Action, c.Reason = providers.Update, "it is only half there: made whole again"
	case c.Unready:
		c.Action, c.Reason = providers.Start, c.unreadyReason()
	case down && leftBehind(c.Object):
		c.Action, c.Reason = providers.Update, "what its last run left is removed"
	case c.Object.Running == nil && leftBehind(c.Object):
		c.Action, c.Reason = providers.Update, "what is left of who used it is removed"
	case on && wantOn && dueReason(c.provisions()) != "":
		c.Action, c.Reason = providers.Update, dueReason(c.provisions())
	case len(c.Due) > 0:
		c.Action, c.Reason = providers.Update, whyDue(c.Due)
	case c.Record == nil && natures[c.Kind].isFound:
		c.Action, c.Reason = providers.Adopt, "it is there"
	case c.Record == nil:
		c.Action, c.Reason = providers.Adopt, "it is ours, and its record was lost"
	case c.newPolicy:
		c.Action, c.Reason = providers.Update, "how vmctl treats it changed; the object stays as it is"
	case d.isBehind(c):
		c.Action, c.Behind = providers.NoOp, true
	case d.outdated(c):
		c.Action, c.Reason = providers.Update, "the recorded state is updated"
	default:
		c.Action = providers.NoOp
	}
}

// whyOff says why an object is not wanted to run: a command may say so, whatever its block has.
func (d *differ) whyOff(a spec.Address) string {
	if _, asked := d.options.Running[a]; asked {
		return "a stop was asked for"
	}
	return "running = false"
}

// changesRunState reports whether an action is about the run state of an object, whatever else it changes.
func changesRunState(a providers.Action) bool {
	return a == providers.Start || a == providers.Stop || a == providers.RestartIt
}

// leftBehind reports whether an earlier run of the object left something behind, such as a stale
// lock.
func leftBehind(o *providers.Object) bool {
	return slices.ContainsFunc(o.Findings, func(f providers.Finding) bool {
		return f.Kind == providers.FindLeftover || f.Kind == providers.FindStaleLock
	})
}

// stopped reports whether an object that does not run is really down. A paused object holds
// memory, a broken one still runs in part, and an ending one is not down yet: they have to be
// stopped first.
func stopped(o *providers.Object) bool {
	return o.State != providers.StatePaused && o.State != providers.StateBroken && o.State != providers.StateEnding
}

// partial reports whether an object is only half there, as its provider found.
func partial(o *providers.Object) bool {
	return slices.ContainsFunc(o.Findings, func(f providers.Finding) bool { return f.Kind == providers.FindPartial })
}

func because(all []alteration, applies providers.Applies) string {
	var names []string
	reason := ""
	for _, a := range all {
		if a.Applies == applies {
			names = append(names, a.name)
			reason = a.Reason
		}
	}
	if len(names) == 1 && reason != "" {
		return names[0] + ": " + reason
	}
	return strings.Join(names, ", ") + " changed"
}

// endOrLetGo decides about an object that is ours and not wanted any more.
func (d *differ) endOrLetGo(c *Change) {
	if c.Object.Owner == nil && d.wasLetGo(c.Address) {
		c.Action, c.Reason, c.Object = providers.Forget, "an earlier run let go of it: its mark is off", nil
		return
	}
	if d.lets(c.Address) {
		c.Action, c.Reason, c.ID = providers.Forget, "its removed block lets go of it: the object stays as it is, without vmctl's mark", c.Object.ID
		c.Warnings = nil
		return
	}
	d.destroy(c)
}

func (d *differ) destroy(c *Change) {
	if outlives(c.Kind) {
		c.Action, c.Reason, c.ID = providers.Forget, "its records are kept: vmctl job list shows them", c.Object.ID
		c.Warnings = nil
		return
	}
	c.Action, c.Reason, c.ID = providers.Destroy, "it is not in the spec", c.Object.ID
	if d.ends(c.Address) {
		c.Reason = "its removed block says so"
	}
	if d.options.CleanUp[c.Address] {
		c.Reason, c.Warnings = "it is in neither the spec nor the state", nil
	}
	if d.options.Destroy {
		c.Reason = "it was asked for"
	}
	if d.goesAlong(c) && !d.options.CleanUp[c.Address] {
		c.Reason, c.Warnings = fmt.Sprintf("it is in neither the spec nor the state, and goes with %s", c.Inside), nil
	}
	d.behind(c)
	d.protect(c)
	if d.options.Destroy || c.Blocked != nil {
		return
	}
	if c.Record != nil && !c.Record.Reserved && markedGeneration(c.Object) > c.Record.Generation && !d.wasInterrupted(c.Address) {
		c.Blocked = &Block{
			Cause: CauseBehind,
			Problem: providers.Refuse(
				fmt.Sprintf("the state is older (generation %d) than the object's mark (%d): nothing is deleted on its word", c.Record.Generation, c.Object.Owner.Generation),
				providers.SayVmctl("if the object really should go: ", "destroy", "--target="+c.Address.String())),
		}
	}
}

func (d *differ) foreign(c *Change, seen Observation, standing Standing) {
	c.Action, c.Object = providers.NoOp, nil
	if c.Want == nil {
		return
	}
	if other := d.ownerOf(c, seen.Object); other != (spec.Address{}) && !d.options.Destroy { // Order decides who gets a name that is ours
		d.create(c)
		return
	}
	what := describe(seen.System, seen.Object)
	why := "vmctl did not make it"
	switch {
	case standing == Clone:
		why = fmt.Sprintf("it is a copy: its mark was written for %s", seen.Object.Owner.Of)
	case seen.Marking == Moved:
		why = fmt.Sprintf("it was moved to %s", d.observations.movedTo(seen.Object))
	case seen.Marking == Unmarked && d.state.Forgotten[string(seen.Object.ID)] == c.Address:
		why = "the state let go of it"
	case seen.Marking == Foreign:
		why = fmt.Sprintf("its mark names %s of project %q (%s)", seen.Object.Owner.Address, seen.Object.Owner.Project, seen.Object.Owner.ID)
	}
	if d.options.Destroy {
		c.Reason = what + " is left alone: " + why
		return
	}
	c.Action = providers.Create
	c.Reason = "it does not exist"
	next := providers.Say(fmt.Sprintf("rename: set another name in the block of %s, or rename the other object with its own tool", c.Address))
	if seen.Marking == Unmarked {
		why += ": import or rename"
		if c.Record != nil && !c.Record.Reserved { // an address has one object, and this one's is gone
			next = append(next, providers.SayVmctl("import: first let go of what had the name before: ", "state", "rm", "--force", c.Address.String())...)
		}
		next = append(next, providers.SayVmctl("import: ", "import", c.Address.String(), string(seen.Object.ID))...)
	}
	c.Blocked = &Block{Cause: CauseForeign, Problem: providers.Refuse(fmt.Sprintf("%s exists, and %s", what, why), next)}
}
