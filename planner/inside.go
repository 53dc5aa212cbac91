package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// sleep is the reason why the inside of an object was not read; "": it was read, or could not be
// read.
type sleep string

const (
	starting sleep = "starting" // an object around it will be started: what is inside is read then
	resting  sleep = "resting"  // an object around it is off and stays so
	unmade   sleep = "unmade"   // the object will be made: nothing is inside of it yet
	nowhere  sleep = "nowhere"  // there is no object, and none will be made: nothing is inside of it

	switching    sleep = "switching"    // the object has a setting under which nothing inside is managed, and gets another one: what is inside is read then
	inapplicable sleep = "inapplicable" // the object has such a setting, or gets it
)

// inert returns the setting under which nothing inside of an object of a kind is managed, as a spec has it, if the
// values have that; "": they have not.
func inert(kind spec.Kind, values cty.Value) string {
	shape, _ := spec.Shape(kind)
	if shape.Inapplicable == nil || ctyread.Text(values, shape.Inapplicable.Attr) != shape.Inapplicable.Value {
		return ""
	}
	return shape.Inapplicable.String()
}

// placeInside places what is inside of other objects, by the spec and by records. An object stays
// in the system of the outermost object around it, whatever that one's block says.
func (w *World) placeInside(keys *systemKeys, c *spec.Config, s *state.Snapshot) (err error) {
	for i := range c.Resources {
		r := &c.Resources[i]
		if (r.Inside == spec.Address{}) {
			continue
		}
		ref, at := r.Provider, keys.ofBlock(r.Provider)
		if home := w.systems[w.placed[outermost(c, s, r.Address)]]; home != nil && home.Key != at.key {
			ref, at = home.Ref, systemKey{key: home.Key, settings: home.Settings}
		}
		key, err := w.addInside(keys, r.Address, r.Inside, ref, at)
		if err != nil {
			return err
		}
		w.wanted[r.Address] = key
		if _, recorded := s.Records[r.Address]; !recorded {
			w.placed[r.Address] = key
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(s.Records), spec.Address.Compare) {
		r := s.Records[a]
		if (r.Inside == spec.Address{}) {
			continue
		}
		if w.placed[a], err = w.addInside(keys, a, r.Inside, r.Provider, keys.current(r)); err != nil {
			return err
		}
	}
	return nil
}

// outermost returns the outermost object around an address, by the records, else by the spec.
func outermost(c *spec.Config, s *state.Snapshot, a spec.Address) spec.Address {
	for seen := map[spec.Address]bool{}; !seen[a]; {
		seen[a] = true
		around := s.Records[a].Inside
		if r, ok := c.Resource(a); ok && around == (spec.Address{}) {
			around = r.Inside
		}
		if (around == spec.Address{}) {
			break
		}
		a = around
	}
	return a
}

// addInside registers the inside of an object as a system, and returns its key.
func (w *World) addInside(keys *systemKeys, a, parent spec.Address, ref spec.ProviderRef, at systemKey) (string, error) {
	t, known := keys.types.Inside[a.Kind]
	if !known {
		return "", fmt.Errorf("%s: this build of vmctl does not know how to manage a %s", a, a.Kind)
	}
	key := insideKey(t, parent)
	if _, ok := w.systems[key]; !ok {
		home, err := w.add(keys, ref, at)
		if err != nil {
			return "", fmt.Errorf("%s: %w", a, err)
		}
		w.systems[key] = &System{Key: key, Ref: ref, Settings: at.settings, Inside: parent, typ: t, home: home, limit: w.limit}
	}
	return key, nil
}

// insideKey returns the key of the system of a type inside of an object.
func insideKey(t providers.Type, parent spec.Address) string {
	return t.Name + " inside " + parent.String()
}

// outermost returns the systems that are inside of nothing, by key.
func (w *World) outermost() []*System {
	var all []*System
	for _, key := range slices.Sorted(maps.Keys(w.systems)) {
		if system := w.systems[key]; (system.Inside == spec.Address{}) {
			all = append(all, system)
		}
	}
	return all
}

// nextLayer returns the systems to read after others, by key: those inside of objects that are now known, else those
// inside of objects that nobody has placed. What is left after these are systems whose records and files contain each
// other: nothing is known of them.
func (w *World) nextLayer() []*System {
	var next, lost, around []*System
	for _, key := range slices.Sorted(maps.Keys(w.systems)) {
		system := w.systems[key]
		outer := w.placed[system.Inside]
		switch {
		case w.read[key]:
		case w.read[outer]:
			next = append(next, system)
		case outer == "":
			lost = append(lost, system)
		default:
			around = append(around, system)
		}
	}
	switch {
	case len(next) > 0:
		return next
	case len(lost) > 0:
		return lost
	}
	for _, system := range around {
		system.unseen = providers.Refuse(fmt.Sprintf("%s is inside of itself, by the records and the files", system.Inside), nil)
	}
	return nil
}

// searchInside adds the insides of objects that run and whose records are lost, or were: the records of what is inside
// may be lost, too. With Options.Inward it adds those of all that run.
func (w *World) searchInside(keys *systemKeys, systems []*System, s *state.Snapshot, options Options) error {
	if len(keys.types.Inside) == 0 {
		return nil
	}
	recorded := map[string]spec.Address{}
	for a, r := range s.Records {
		recorded[r.ID] = a
	}
	for _, system := range systems {
		for i := range system.Inventory.Objects {
			o := &system.Inventory.Objects[i]
			if MarkingOf(o, options.Project) != Ours || !isUp(o) {
				continue
			}
			a, known := recorded[string(o.ID)]
			if !known {
				a = w.addressOf(o)
			}
			if r := s.Records[a]; r.ID != "" && !r.Found && !options.Inward || w.placed[a] != system.Key {
				continue
			}
			for _, kind := range spec.InsideOf(a.Kind) {
				if _, built := keys.types.Inside[kind]; !built {
					continue
				}
				if _, err := w.addInside(keys, spec.Address{Kind: kind}, a, system.Ref, system.homeKey()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// placeFound places objects whose records were lost where they were found, in place of where their blocks want them.
func (w *World) placeFound(systems []*System, s *state.Snapshot, p providers.Project) {
	for _, system := range systems {
		for i := range system.Inventory.Objects {
			o := &system.Inventory.Objects[i]
			if MarkingOf(o, p) != Ours {
				continue
			}
			a := o.Owner.Address
			if _, recorded := s.Records[a]; recorded || w.placed[a] == "" || w.placed[a] == system.Key || w.holds(w.placed[a], a, p) {
				continue
			}
			w.placed[a] = system.Key
		}
	}
}

// holds reports whether an object that bears the mark of an address was found in a system.
func (w *World) holds(key string, a spec.Address, p providers.Project) bool {
	all := w.systems[key].Inventory.Objects
	return slices.ContainsFunc(all, func(o providers.Object) bool { return MarkingOf(&o, p) == Ours && o.Owner.Address == a })
}

// place names a system as a place for objects.
func (s *System) place() string {
	if (s.Inside == spec.Address{}) {
		return s.Ref.String()
	}
	return s.Inside.String()
}

// String names a system for people.
func (s *System) String() string {
	if (s.Inside == spec.Address{}) {
		return s.Ref.String()
	}
	return "what is inside of " + s.Inside.String()
}

// unread returns why nothing of a system is known; nil: something is.
func (s *System) unread() *providers.Problem {
	switch s.sleep {
	case starting, resting:
		return providers.Refuse(fmt.Sprintf("%s is off: what is inside of it cannot be read", s.off), nil)
	case switching:
		return providers.Refuse(fmt.Sprintf("%s still has %s: what is inside of it is read once that has changed", s.off, s.setting), providers.Vmctl("apply"))
	case inapplicable:
		return providers.Refuse(s.whyInapplicable(), providers.Say(fmt.Sprintf("write another %s into %s, and apply", settingName(s.off.Kind), s.off)))
	case unmade, nowhere, "":
		return s.unseen
	default:
		panic("unknown sleep " + string(s.sleep))
	}
}

// IsInapplicable reports whether nothing in a system is managed because of a setting of the object around it.
func (s *System) IsInapplicable() bool { return s.sleep == inapplicable }

// Rests reports whether nothing in a system is read because an object around it is off, and stays so.
func (s *System) Rests() bool { return s.sleep == resting }

func (s *System) whyInapplicable() string {
	return fmt.Sprintf("%s has %s, under which nothing inside of it is managed", s.off, s.setting)
}

// settingName returns the name of the attribute that decides whether the inside of an object of a kind is managed.
func settingName(kind spec.Kind) string {
	shape, _ := spec.Shape(kind)
	return shape.Inapplicable.Attr
}

// rouse decides whether a system inside of an object can be read now, by what was seen of the
// objects around it. Else it notes why not.
func (w *World) rouse(system *System, v *Observations, c *spec.Config, s *state.Snapshot, o Options) {
	parent := system.Inside
	outer := w.systems[w.placed[parent]]
	if outer == nil { // neither in the spec nor recorded
		if system.unseen = w.unsure(system, v, o.Project); system.unseen == nil {
			system.sleep = nowhere
		}
		return
	}
	wanted, recorded := inert(parent.Kind, attributes(c, s, parent)), inert(parent.Kind, s.Records[parent].Values)
	if o.Destroy { // nothing is changed before it goes
		wanted = cmp.Or(wanted, recorded)
	}
	switch {
	case outer.sleep == nowhere:
		system.sleep = nowhere
		return
	case wanted != "":
		system.sleep, system.off, system.setting = inapplicable, parent, wanted
		return
	case outer.sleep == inapplicable:
		system.sleep, system.off, system.setting = inapplicable, outer.off, outer.setting
		return
	case outer.sleep == starting, outer.sleep == resting, outer.sleep == switching:
		system.sleep, system.off, system.setting = outer.sleep, outer.off, outer.setting
		return
	}
	seen := v.At(parent, nameFor(c, s, o.Project, parent))
	switch {
	case seen.Unknown != nil:
		system.unseen = seen.Unknown.Within("%s could not be read", parent)
	case !isOurs(seen):
		system.sleep = nowhere
		if _, inSpec := c.Resource(parent); inSpec && !o.Destroy {
			system.sleep = unmade
		}
	case runStateUnknown(seen.Object) != "":
		system.unseen = providers.Refuse(fmt.Sprintf("the run state of %s could not be read: %s", parent, runStateUnknown(seen.Object)), nil)
	case !isUp(seen.Object):
		system.sleep, system.off = resting, parent
		if startsUp(c, o, parent) {
			system.sleep = starting
		}
	case recorded != "":
		system.sleep, system.off, system.setting = switching, parent, recorded
	default:
		w.parents.saw(outer, seen.Object, parent, attributes(c, s, parent))
	}
}

// attributes returns the attributes of an address: those of the spec, else of the record.
func attributes(c *spec.Config, s *state.Snapshot, a spec.Address) cty.Value {
	if r, inSpec := c.Resource(a); inSpec {
		return r.Want
	}
	return s.Records[a].Values
}

// isUp reports whether the inside of an object can be reached: it runs, or is of a kind that does
// not run.
func isUp(o *providers.Object) bool {
	if _, runs := spec.AttrAt(o.Kind, "running"); !runs {
		return true
	}
	return o.Running != nil && *o.Running
}

// unsure returns why nobody can say that the object around a system is gone, which has neither a block nor
// a record; nil: it is gone.
func (w *World) unsure(system *System, v *Observations, p providers.Project) *providers.Problem {
	parent, home := system.Inside, w.systems[system.home]
	if where := w.orphan(parent, p); where != "" {
		return providers.Refuse(fmt.Sprintf("%s has no block and no record, and %s is there", parent, where), nil)
	}
	if _, lists := home.typ.Kinds[parent.Kind]; !lists { // it was inside of something
		rm := []string{"state", "rm"}
		for _, a := range slices.SortedFunc(maps.Keys(v.state.Records), spec.Address.Compare) {
			if v.state.Records[a].Inside == parent {
				rm = append(rm, a.String())
			}
		}
		return providers.Refuse(
			fmt.Sprintf("%s has no block and no record, and nobody knows where it was", parent),
			providers.SayVmctl("if it is gone, remove the records of what was inside of it: ", rm...))
	}
	why := cmp.Or(home.unread(), v.indexes[home.Key].unknown(parent.Kind, "", ObjectName(p, parent)), home.Inventory.Partial[parent.Kind])
	if why == nil {
		return nil
	}
	return why.Within("%s has no block and no record, and %s could not be read", parent, home)
}

// orphan describes an object that bears the mark of an address, "" where none does.
func (w *World) orphan(a spec.Address, p providers.Project) string {
	for _, system := range w.Systems() {
		for i := range system.Inventory.Objects {
			if o := &system.Inventory.Objects[i]; MarkingOf(o, p) == Ours && w.addressOf(o) == a {
				return describe(system, o)
			}
		}
	}
	return ""
}

// isOurs reports whether the object of a seen is managed, or would be if the spec had a block
// for it.
func isOurs(s Observation) bool {
	switch Stand(s.Marking, s.Recorded, true) {
	case Managed, Adoptee:
		return true
	case Unwanted, Orphan, Stranger, Clone, LetGo, Wanted, NotOurs:
		return false
	default:
		panic("unknown standing of " + string(s.Marking))
	}
}

// startsUp reports whether the plan brings an object up.
func startsUp(c *spec.Config, o Options, a spec.Address) bool {
	r, inSpec := c.Resource(a)
	if !inSpec || o.Destroy {
		return false
	}
	if on, asked := o.Running[a]; asked {
		return on
	}
	return ctyread.True(r.Want, "running")
}

// nameFor returns the name that the object of an address has by its record, or else would get.
func nameFor(c *spec.Config, s *state.Snapshot, p providers.Project, a spec.Address) string {
	if r, ok := s.Records[a]; ok {
		return r.Name
	}
	if r, ok := c.Resource(a); ok {
		if name := nameOf(r.Want); name != "" {
			return name
		}
	}
	return ObjectName(p, a)
}

// Deferred is an address that cannot be read before this plan was carried out.
type Deferred struct{ Address, Until spec.Address } // Until: an object that has to be ready

// asleep decides about a change inside of an object that was not read, as far as it can before the
// change of that object is known. It reports whether the inside was not read.
func (d *differ) asleep(c *Change, system *System, wanted bool) bool {
	if system.sleep == unmade { // nothing is there, as if it had been read
		return false
	}
	if system.sleep == nowhere && !wanted && c.Record != nil {
		c.Action, c.Reason = providers.Forget, fmt.Sprintf("%s does not exist, and nothing is inside of it", system.Inside)
	}
	if wanted && c.Want.Inside != c.Inside {
		switch system.sleep {
		case nowhere: // it is gone, and made again where it is wanted
			return false
		case resting:
			if d.world.systems[d.world.wanted[c.Address]].sleep == resting { // nothing can be made there either
				break
			}
			c.Action, c.Blocked = providers.Update, shutIn(c, system.off, system.off)
		case inapplicable:
			if !d.world.systems[d.world.wanted[c.Address]].IsInapplicable() {
				c.Action = providers.Update
				c.Blocked = &Block{Cause: CauseOff, Problem: providers.Refuse(
					fmt.Sprintf("%s has %s: %s cannot be taken out of it", system.off, system.setting, c.Address),
					providers.Say(fmt.Sprintf("write another %s into %s, and apply, before it goes elsewhere", settingName(system.off.Kind), system.off)))}
			}
		case starting, switching, unmade, "":
		}
	}
	return system.sleep != ""
}

// shutIn returns the block of a change that would take an object out of another one which is off, with what has to be started
// first.
func shutIn(c *Change, off, first spec.Address) *Block {
	return &Block{Cause: CauseOff, Problem: providers.Refuse(fmt.Sprintf("%s is off: %s cannot be taken out of it", off, c.Address), startFirst(first))}
}

// movesNowhere returns the block that refuses to move an object to another system.
func movesNowhere(c *Change) *Block {
	return &Block{
		Cause: CauseRefused, Attr: "provider",
		Problem: providers.Refuse(
			"provider: "+staysPut,
			slices.Concat(providers.Vmctl("destroy", "--target="+c.Address.String()), providers.SayVmctl("then: ", "apply"))),
	}
}

const staysPut = "an object does not move to another system: destroy it first, then apply"
