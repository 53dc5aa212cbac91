package providertest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

// trial is one row with its values on one object.
type trial struct {
	effect
	values [2]cty.Value
	now    int // the value that the object has
}

// trials returns the rows that are tried on a scene of this world.
func (s *stage) trials(on scene) []trial {
	var all []trial
	for _, e := range effects {
		_, lacked := s.Effects.Lacks[e.key()]
		_, idle := s.Effects.Idle[e.key()]
		if e.on == on && !lacked && !idle {
			all = append(all, trial{effect: e, values: e.values(s)})
		}
	}
	return all
}

// isWanted reports whether the attribute is a part of the object, not of its policy.
func (e effect) isWanted() bool {
	a, _ := spec.AttrAt(e.kind, e.path)
	shape, _ := spec.Shape(e.kind)
	return !a.Policy && !inPolicy(shape, e.path)
}

// kernelEffects tries the attributes of a running VM.
//
// row A30
func kernelEffects(s *stage) {
	dev, one, two := s.actor("dev"), s.disk("one"), s.disk("two")
	one.create()
	two.create()
	dev.uses = []*actor{one, two}
	if s.makesNetworks() {
		for _, label := range []string{"one", "two"} {
			network := s.network(label)
			network.create()
			dev.uses = append(dev.uses, network)
		}
	}
	dev.tryEach(s.trials(onKernel))
}

// makesNetworks reports whether the system of the world makes networks for VMs.
func (s *stage) makesNetworks() bool {
	_, has := s.Type.Kinds[spec.Network]
	_, idle := s.Effects.Idle[string(spec.Network)+".cidr"]
	return has && !idle
}

// networkEffects tries the attributes of a network for VMs, where the system has them.
func networkEffects(s *stage) {
	if s.makesNetworks() {
		s.network("lan").tryEach(s.trials(onNetwork))
	}
}

// imageEffects tries the attributes of a VM that begins as an image.
func imageEffects(s *stage) {
	dev := s.actor("dev")
	t := spec.WantType(spec.VM)
	dev.want = put(dev.want, t, "boot", cty.NullVal(t.AttributeType("boot")))
	dev.want = put(dev.want, t, "running", cty.False)
	dev.tryEach(s.trials(onImage))
}

// deafEffects tries the waits of a stop on a VM that ignores requests.
func deafEffects(s *stage) {
	s.Deafen(s.World)
	s.reopen()
	dev := s.actor("dev")
	dev.create()
	for _, try := range s.trials(onDeaf) {
		try.acts(dev, try.effect)
	}
}

// stuckEffects tries the waits of a stop on a VM that does not end, where the system can have one.
func stuckEffects(s *stage) {
	if s.Stick == nil {
		return
	}
	s.Stick(s.World)
	s.reopen()
	dev := s.actor("dev")
	dev.create()
	for _, try := range s.trials(onStuck) {
		try.acts(dev, try.effect)
	}
}

func diskEffects(s *stage) { s.disk("cache").tryEach(s.trials(onDisk)) }

// boxEffects tries the attributes of a box inside a running VM, where the world has boxes.
func boxEffects(s *stage) {
	if _, has := s.typeOf(box.Kind); !has {
		return
	}
	dev := s.actor("dev")
	dev.create()
	w := *s.World
	w.Type, w.Settings.Via = s.Inside[box.Kind], dev.via()
	inside := newStage(s.t, &w)
	tool := inside.actor("tool")
	tool.address.Kind, tool.want, tool.policy = box.Kind, cty.NilVal, cty.EmptyObjectVal
	tool.tryEach(s.trials(onBox))
}

// via returns the way into a VM that runs on.
func (a *actor) via() *providers.Via {
	a.t.Helper()
	host, ok := providers.Ability[providers.Host](a.provider)
	if !ok {
		a.t.Fatal("the provider lets nobody enter its VMs")
	}
	o := a.object()
	g, err := host.Enter(a.t.Context(), o, a.want)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		if err := g.Close(); err != nil {
			a.t.Error(err)
		}
	})
	return &providers.Via{
		Address: a.address,
		Object:  func(context.Context) (providers.Object, error) { return o, nil },
		Enter:   func(context.Context) (providers.Guest, error) { return g, nil },
	}
}

// tryEach makes an object with the first values, and gives it the second ones in the ways that
// the edits demand: all those that need a restart together, then those that apply live, then those
// that need a replacement. After each change it looks for every value.
func (a *actor) tryEach(all []trial) {
	a.t.Helper()
	a.want = overlaid(a.baseOf(a.address.Kind), a.want)
	for _, t := range all {
		if t.isWanted() {
			a.want = a.set(a.want, t.effect, t.values[0])
		}
	}
	a.name = cmp.Or(ctyread.Text(a.want, "name"), a.name)
	a.create()
	a.look(all, nil)
	for _, t := range all {
		if t.acts != nil {
			t.acts(a, t.effect)
		}
	}
	for _, applies := range []providers.Applies{providers.Restart, providers.Live, providers.Replace} {
		want, now := a.want, []string{}
		for i, t := range all {
			if t.now == 0 && t.isWanted() && t.path != "running" && a.applies(a.set(a.want, t.effect, t.values[1])) == applies {
				want = a.set(want, t.effect, t.values[1])
				all[i].now, now = 1, append(now, t.path)
			}
		}
		if len(now) > 0 {
			a.turnTo(want, applies)
			a.look(all, now)
		}
	}
	for i, t := range all {
		if t.path == "running" {
			want := a.set(a.want, t.effect, t.values[1])
			c := a.change(providers.Stop)
			c.Want = want
			a.carryOut(c)
			all[i].now = 1
			a.look(all[i:i+1], nil)
		}
		if t.isWanted() && all[i].now == 0 {
			a.t.Errorf("%s: no action gives it another value", t.key())
		}
	}
	a.carryOut(a.change(providers.Destroy))
}

// look checks the value of each attribute. The system reports on those that changed alone; nil:
// on all.
func (a *actor) look(all []trial, changed []string) {
	a.t.Helper()
	o := a.object()
	for _, t := range all {
		if !t.isWanted() || changed != nil && !slices.Contains(changed, t.path) {
			continue
		}
		l := sample{actor: a, effect: t.effect, object: o, value: t.values[t.now]}
		if why := l.missing(); why != "" {
			a.t.Errorf("%s, with its value %d: %s", t.key(), t.now+1, why)
		}
	}
	for _, t := range all { // the others stay as they are
		if changed == nil || slices.Contains(changed, t.path) || !t.isWanted() || t.shows != nil {
			continue
		}
		if v := at(o.Attrs, t.path); v != cty.NilVal && !equal(v, t.values[t.now]) {
			a.t.Errorf("%s, after a change of %q: it is %#v, and was to be %#v", t.key(), changed, v, t.values[t.now])
		}
	}
}

// applies returns the most disruptive verdict on the edits that lead to a want.
func (a *actor) applies(want cty.Value) providers.Applies {
	o := a.object()
	var most providers.Applies
	for _, e := range a.editsTo(want, isRunning(o)) {
		if e.Verdict.Applies.Rank() > most.Rank() {
			most = e.Verdict.Applies
		}
	}
	return most
}

// editsTo returns the edits that lead to a want, as a planner would name them: an object by its
// attributes, a list as a whole.
func (a *actor) editsTo(want cty.Value, running bool) []providers.Edit {
	attrs := a.Type.Kinds[a.address.Kind]
	var all []providers.Edit
	var compare func(path string, before, after cty.Value)
	compare = func(path string, before, after cty.Value) {
		if isBlock(before) && isBlock(after) {
			for _, name := range slices.Sorted(maps.Keys(after.Type().AttributeTypes())) {
				inner := name
				if path != "" {
					inner = path + "." + name
				}
				compare(inner, ctyread.Attr(before, name), after.GetAttr(name))
			}
			return
		}
		if path == "running" || before != cty.NilVal && before.RawEquals(after) {
			return
		}
		e := providers.Edit{Path: path, Before: before, After: after, Verdict: providers.Verdict{Applies: providers.Replace}}
		if attr, _ := supportOf(path, attrs); attr.Judge != nil {
			e.Verdict = attr.Judge(before, after, running)
		}
		all = append(all, e)
	}
	compare("", a.want, want)
	return all
}

func isBlock(v cty.Value) bool { return ctyread.Known(v) && v.Type().IsObjectType() }

// turnTo changes the object by the action that its edits demand.
func (a *actor) turnTo(want cty.Value, applies providers.Applies) {
	a.t.Helper()
	action := map[providers.Applies]providers.Action{
		providers.Live: providers.Update, providers.Restart: providers.RestartIt, providers.Replace: providers.ReplaceIt,
	}[applies]
	a.values = overlaid(a.want, a.values) // a record has both
	c := a.change(action)
	c.Edits, c.Want, c.Generation = a.editsTo(want, isRunning(*c.Object)), want, c.Generation+1
	if action == providers.ReplaceIt {
		c.ID, c.Replaced, c.Name = a.newID(), 1, cmp.Or(ctyread.Text(want, "name"), a.name)
	}
	a.carryOut(c)
	a.id, a.name = c.ID, c.Name
}

// overlaid returns the attributes of base, with those of v in their place.
func overlaid(base, v cty.Value) cty.Value {
	all := base.AsValueMap()
	if v != cty.NilVal {
		maps.Copy(all, v.AsValueMap())
	}
	return cty.ObjectVal(all)
}
