package engine_test

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// only returns the one object of an engine.
func only(t testing.TB, p providers.Provider) providers.Object {
	t.Helper()
	inv, err := p.Observe(t.Context(), providers.Query{})
	if err != nil || len(inv.Objects) != 1 {
		t.Fatalf("observed %v, %v", inv.Objects, err)
	}
	return inv.Objects[0]
}

// ops returns the operations of the steps of a change.
func ops(t *testing.T, p providers.Provider, c providers.Change) string {
	t.Helper()
	steps, err := p.Steps(c)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, s := range steps {
		all = append(all, s.Op)
	}
	return strings.Join(all, " ")
}

// What brings a container from each state that an engine knows to each that a spec can want. created is met by every
// state that does not run. One that the engine failed to remove never starts again.
//
// row E39, of the table of states
func TestStates(t *testing.T) {
	found := []string{"created", "running", "paused", "restarting", "exited", "dead"}
	want := map[string][]string{ // in the order of found
		"running": {"start", "", "unpause", "", "start", "remove make start"},
		"created": {"", "stop", "stop", "stop", "", ""},
		"paused":  {"start pause", "pause", "", "pause", "start pause", "remove make start pause"},
	}
	for wanted, all := range want {
		for i, state := range found {
			t.Run(state+" to "+wanted, func(t *testing.T) {
				f := newFake(t)
				f.has("demo.web", state, labels("demo.web"))
				p := f.open()
				o := only(t, p)
				c := providers.Change{
					Address: web, Kind: spec.Container, Action: providers.Update, Name: o.Name, ID: o.ID, Object: &o,
					Want: cty.ObjectVal(map[string]cty.Value{"state": cty.StringVal(wanted)}),
				}
				if now := ctyread.Text(o.Attrs, "state"); now != wanted {
					c.Edits = []providers.Edit{{Path: "state", Before: cty.StringVal(now), After: cty.StringVal(wanted)}}
				}
				if o.Spent != "" && len(c.Edits) > 0 { // so the planner decides
					c.Action, c.ID = providers.ReplaceIt, "new"
				}
				if got := ops(t, p, c); got != all[i] {
					t.Errorf("steps %q, want %q", got, all[i])
				}
			})
		}
	}
}

// A container is stopped before the machine of its engine goes down, and starts again only if the plan brings that machine up.
func TestReleaseSteps(t *testing.T) {
	f := newFake(t)
	f.has("demo.web", "running", labels("demo.web"))
	p := f.open()
	o := only(t, p)
	for want, wanted := range map[string]cty.Value{
		"stop start": cty.ObjectVal(map[string]cty.Value{"state": cty.StringVal("running")}),
		"stop":       cty.NilVal,
	} {
		c := providers.Change{Address: web, Kind: spec.Container, Action: providers.Release, Name: o.Name, ID: o.ID, Object: &o, Want: wanted}
		if got := ops(t, p, c); got != want {
			t.Errorf("steps %q, want %q", got, want)
		}
	}
}

// A replaced container waits for its successor, unless what it uses goes away or its successor is elsewhere.
func TestReplacementSteps(t *testing.T) {
	label := []providers.Edit{{Path: "labels"}}
	use := providers.Claim{Kind: providers.ClaimUse, Key: "image sha256:one"}
	for _, test := range []struct {
		name   string
		change providers.Change
		want   string
	}{
		{"another label", providers.Change{Edits: label}, "stop park make start drop"},
		{"its image goes", providers.Change{Edits: label, Yields: []providers.Claim{use}}, "stop remove make start"},
		{"its name goes to another", providers.Change{Edits: label, Yields: []providers.Claim{{Kind: "container name", Key: "demo.web"}}}, "stop park make start drop"},
		{"another engine", providers.Change{Edits: []providers.Edit{{Path: "engine"}}}, "stop remove make start"},
		{"its engine is replaced", providers.Change{}, "stop remove make start"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.has("demo.web", "running", labels("demo.web"))
			p := f.open()
			o := only(t, p)
			c := test.change
			c.Address, c.Kind, c.Action, c.Name, c.ID, c.Object = web, spec.Container, providers.ReplaceIt, "demo.web", "new", &o
			c.Want = cty.ObjectVal(map[string]cty.Value{"state": cty.StringVal("running")})
			if got := ops(t, p, c); got != test.want {
				t.Errorf("steps %q, want %q", got, test.want)
			}
		})
	}
}

// What uses an image, a volume or a network holds a claim that its removal takes: of an image only with its last name.
//
// row E33, of claims
func TestUses(t *testing.T) {
	f := newFake(t)
	one := item(cid, "theirs", "exited", nil)
	one["Mounts"] = []any{map[string]any{"Type": "volume", "Name": "data"}, map[string]any{"Type": "bind", "Name": ""}}
	one["NetworkSettings"] = map[string]any{"Networks": map[string]any{"back": map[string]any{}}}
	f.set("GET /containers/json", answer{body: asJSON(t, []any{one})})
	f.set("GET /volumes", answer{body: `{"Volumes":[{"Name":"data","Driver":"local"}]}`})
	f.set("GET /networks", answer{body: `[{"Id":"n","Name":"back","Driver":"bridge"}]`})
	f.set("GET /images/json", answer{body: `[{"Id":"sha256:one","RepoTags":["box:1"]},{"Id":"sha256:two","RepoTags":["b:1","b:2"]}]`})
	p := f.open()
	inv, err := p.Observe(t.Context(), providers.Query{})
	if err != nil {
		t.Fatal(err)
	}
	held := map[providers.Claim]bool{}
	for _, o := range inv.Objects {
		for _, c := range append(o.Holds, o.HoldsUp...) {
			held[c] = true
		}
	}
	for _, o := range inv.Objects {
		steps, err := p.Steps(providers.Change{Address: spec.Address{Kind: o.Kind, Name: "x"}, Kind: o.Kind, Action: providers.Destroy, Name: o.Name, ID: o.ID, Object: &o})
		if err != nil || len(steps) != 1 {
			t.Fatalf("steps to remove %s: %v, %v", o.Name, steps, err)
		}
		var got string
		for _, c := range steps[0].Takes {
			got += c.String()
			if held[c] {
				got += ", held"
			}
		}
		want := map[string]string{
			"docker.io/library/box:1": "use of image sha256:one, held", "data": "use of volume data, held",
			"back": "use of network back", // a container that is down does not keep it
		}[o.Name]
		if got != want {
			t.Errorf("the removal of %s takes %q, want %q", o.Name, got, want)
		}
	}
}
