package providertest

import (
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"vmctl/internal/ctyread"
	"vmctl/providers"
)

func life(s *stage) {
	before := s.Traces()
	dev := s.actor("dev")
	if o := dev.find(); o != nil {
		s.t.Fatalf("an empty system has %+v", o)
	}
	c := dev.change(providers.Create)
	same(s.t, "the phases of a creation", "make, up, ready", phases(dev.steps(c)))
	all := dev.create()
	last := all[len(all)-1].result
	if last.Running == nil || !*last.Running {
		s.t.Errorf("a VM that was created says running = %v", last.Running)
	}
	o := dev.object()
	dev.checkMade(o)
	same(s.t, "what is observed is what the last step left", last.Fingerprint, o.Fingerprint)
	for name, v := range last.Values.AsValueMap() {
		if !dev.Type.Kinds["vm"][name].Computed {
			s.t.Errorf("a step returned the value of %s, which is not computed", name)
		}
		if shown := ctyread.Attr(o.Attrs, name); shown == cty.NilVal || !shown.RawEquals(v) {
			s.t.Errorf("%s is %#v when observed, and the step said %#v", name, shown, v)
		}
	}
	if id := ctyread.Attr(o.Attrs, "id"); id == cty.NilVal || id.AsString() != string(dev.id) {
		s.t.Errorf("id is %#v, and it is %s", id, dev.id)
	}
	all = dev.carryOut(dev.change(providers.Destroy))
	if !all[len(all)-1].result.Gone {
		s.t.Error("the last step of a destruction does not say that the VM is gone")
	}
	if o := dev.find(); o != nil {
		s.t.Errorf("after its destruction there is %+v", o)
	}
	same(s.t, "what is left after a destruction", before, s.Traces())
}

// checkMade checks the attributes and the mark of an object that vmctl made.
func (a *actor) checkMade(o providers.Object) {
	a.t.Helper()
	a.checkMark(o)
	if !isRunning(o) {
		a.t.Errorf("it is %q (running %v), and was to run", o.State, o.Running)
	}
	if len(o.Findings) > 0 || len(o.Unreadable) > 0 {
		a.t.Errorf("there is something wrong with it: %+v %v", o.Findings, o.Unreadable)
	}
	if o.Fingerprint == "" {
		a.t.Error("it has no fingerprint")
	}
	for name, v := range o.Attrs.AsValueMap() {
		if want := ctyread.Attr(a.want, name); want != cty.NilVal && name != "boot" && !equal(v, want) {
			a.t.Errorf("%s is %#v, and was to be %#v", name, v, want)
		}
	}
}

// checkMark checks the owner mark of an object.
func (a *actor) checkMark(o providers.Object) {
	a.t.Helper()
	if o.Owner == nil {
		a.t.Errorf("%s bears no mark", o.Name)
		return
	}
	project, mark := a.Settings.Project, *o.Owner
	mark.HostKey = "" // which is the system's own
	same(a.t, "the owner mark", providers.Mark{
		ID: project.Lineage(), Project: project.Name, Address: a.address, Of: a.id, Generation: a.generation,
	}, mark)
	same(a.t, "the name", a.name, o.Name)
}

func equal(seen, want cty.Value) bool {
	converted, err := convert.Convert(seen, want.Type())
	return err == nil && converted.RawEquals(want)
}

func observing(s *stage) {
	dev := s.actor("dev")
	nothing := s.Traces()
	s.observe(dev.known())
	same(s.t, "observing an empty system", nothing, s.Traces())
	dev.create()
	before, first := s.Traces(), dev.object()
	second := dev.object()
	s.reopen()
	third := dev.object()
	dev.steps(dev.change(providers.RestartIt))
	same(s.t, "observing and planning", before, s.Traces())
	same(s.t, "the fingerprint when nothing changed", first.Fingerprint, second.Fingerprint)
	same(s.t, "the fingerprint from another process's point of view", first.Fingerprint, third.Fingerprint)
	ours := slices.DeleteFunc(s.observe().Objects, func(o providers.Object) bool {
		return o.Owner == nil || o.Owner.ID != s.Settings.Project.Lineage()
	})
	if len(ours) != 1 || ours[0].ID != dev.id {
		s.t.Errorf("without being asked for it, what bears our mark is %+v", ours)
	}
}
