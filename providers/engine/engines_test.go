package engine_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// An engine has nothing that could be deleted: letting go of it is one step, which asks the engine for nothing and waits for
// nothing.
//
// row E38
func TestLetGoOfEngine(t *testing.T) {
	f := newFake(t)
	p := f.openEngines()
	socket := cty.StringVal("unix:///fake")
	inv, err := p.Observe(t.Context(), providers.Query{Known: []providers.Known{{
		Address: here, Kind: spec.Engine, ID: "one", Name: "demo.here", Prior: cty.ObjectVal(map[string]cty.Value{"host": socket}),
	}}})
	if err != nil || len(inv.Objects) != 1 {
		t.Fatalf("observed %v, %v", inv.Objects, err)
	}
	o := inv.Objects[0]
	steps, err := p.Steps(providers.Change{Address: here, Kind: spec.Engine, Action: providers.Destroy, Name: o.Name, ID: o.ID, Object: &o})
	if err != nil || len(steps) != 1 {
		t.Fatalf("steps %v, %v", steps, err)
	}
	r, err := p.Do(t.Context(), providers.Work{Step: steps[0], Expect: o.Fingerprint, Prior: o.Attrs}, func(providers.Progress) {})
	if err != nil || !r.Gone || len(f.asked) > 0 {
		t.Errorf("it ended with %+v, %v, and the engine was asked %q", r, err, f.asked)
	}
}

// An engine that is recorded as moby and is to be a containerd may be off already: to let go of it asks for nothing.
func TestLetGoOfAnEngineThatIsToBeAContainerd(t *testing.T) {
	f := newFake(t)
	f.set("GET /info", answer{status: 500, body: `{"message":"it is off"}`})
	p := f.openEngines()
	values := func(typ string) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"host": cty.StringVal("unix:///fake"), "type": cty.StringVal(typ)})
	}
	inv, err := p.Observe(t.Context(), providers.Query{Known: []providers.Known{{
		Address: here, Kind: spec.Engine, ID: "one", Name: "demo.here", Prior: values("moby"), Want: values("containerd"),
	}}})
	if err != nil || len(inv.Objects) != 1 {
		t.Fatalf("observed %v, %v", inv.Objects, err)
	}
	o := inv.Objects[0]
	steps, err := p.Steps(providers.Change{Address: here, Kind: spec.Engine, Action: providers.Destroy, Name: o.Name, ID: o.ID, Object: &o})
	if err != nil || len(steps) != 1 {
		t.Fatalf("steps %v, %v", steps, err)
	}
	if r, err := p.Do(t.Context(), providers.Work{Step: steps[0], Expect: o.Fingerprint, Prior: o.Attrs}, func(providers.Progress) {}); err != nil || !r.Gone {
		t.Errorf("it ended with %+v, %v", r, err)
	}
}
