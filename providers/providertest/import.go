package providertest

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
)

// found returns the object that an import names, as it is before the import.
func (a *actor) found(called string) providers.Object {
	a.t.Helper()
	a.imports = "nobody-has-this-name"
	if id, there := a.see().Found[a.address]; there {
		a.t.Errorf("what does not exist is found as %q", id)
	}
	a.imports = providers.ID(called)
	inv := a.see()
	id, there := inv.Found[a.address]
	i := slices.IndexFunc(inv.Objects, func(o providers.Object) bool { return o.Kind == a.address.Kind && o.ID == id })
	if !there || i < 0 {
		a.t.Fatalf("%s is not found: %v among %+v", called, inv.Found, inv.Objects)
	}
	if o := inv.Objects[i]; o.Owner != nil || o.Fingerprint == "" {
		a.t.Errorf("what others made is seen as %+v", o)
	}
	return inv.Objects[i]
}

// taking returns the change that imports an object as it is.
func (a *actor) taking(o providers.Object) providers.Change {
	a.id, a.name = o.ID, o.Name
	c := a.change(providers.Import)
	c.Mark = &providers.MarkEdit{}
	return c
}

func importedDisk(s *stage) {
	before := s.Traces()
	cache := s.disk("cache")
	called, _ := s.Disks.Foreign("theirs")
	o := cache.found(called)
	s.Disks.Fill(o)
	if v := ctyread.Attr(o.Attrs, "size"); v == cty.NilVal {
		s.t.Fatal("it does not say how large it is")
	}
	cache.want = with(cache.want, "size", ctyread.Attr(o.Attrs, "size"))
	o = cache.found(called)
	c := cache.taking(o)
	same(s.t, "the phases of an import", "change", phases(cache.steps(c)))
	r := cache.insist(c)
	cache.id = r.ID
	now := cache.object()
	cache.checkMark(now)
	if !s.Disks.Filled(now) {
		s.t.Error("what was on it is gone after its import")
	}
	cache.imports = ""
	cache.grow()
	cache.carryOut(cache.change(providers.Destroy))
	same(s.t, "what is left after a destruction", before, s.Traces())
}

func importedVM(s *stage) {
	before := s.Traces()
	dev := s.actor("dev")
	s.Foreign("theirs")
	dev.want = with(dev.want, "running", cty.False)
	o := dev.found("theirs")
	c := dev.taking(o)
	same(s.t, "the phases of an import", "change", phases(dev.steps(c)))
	dev.insist(c)
	now := dev.object()
	dev.checkMark(now)
	if !isOff(now) {
		s.t.Errorf("after its import it is %q", now.State)
	}
	dev.imports = ""
	dev.carryOut(dev.change(providers.Destroy))
	same(s.t, "what is left after a destruction", before, s.Traces())
}
