package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// destroys removes the one object of an engine, by the steps of its destruction.
func destroys(ctx context.Context, t *testing.T, p providers.Provider, prior cty.Value) error {
	t.Helper()
	o := only(t, p)
	address := spec.Address{Kind: o.Kind, Name: "web"}
	steps, err := p.Steps(providers.Change{Address: address, Kind: o.Kind, Action: providers.Destroy, Name: o.Name, ID: o.ID, Object: &o})
	if err != nil || len(steps) != 1 {
		t.Fatalf("steps %v, %v", steps, err)
	}
	_, err = p.Do(ctx, providers.Work{Step: steps[0], Expect: o.Fingerprint, Prior: prior}, func(providers.Progress) {})
	return err
}

// An engine that goes on listing what it has removed is waited for: after the step, a list is empty. Another object that has
// the name by then is not waited for.
//
// row E47
func TestRemovalAwaitsAbsence(t *testing.T) {
	mark := labels("demo.web")
	volume := func(token string) string {
		own := map[string]string{}
		for name, value := range mark {
			own[name] = value
		}
		own["vmctl.address"], own["vmctl.token"] = "volume.web", token
		return asJSON(t, map[string]any{"Volumes": []any{map[string]any{"Name": "demo.web", "Driver": "local", "Labels": own}}, "Warnings": nil})
	}
	ours := asJSON(t, []any{item(cid, "demo.web", "exited", mark)})
	leaving := asJSON(t, []any{item(cid, "demo.web", "removing", mark)})
	images := `[{"Id":"sha256:one","RepoTags":["box:1"]}]`
	for _, test := range []struct {
		name, path, list string
		before           string
		after            []string
		prior            map[string]cty.Value
	}{
		{"a container", "/containers/" + cid, "/containers/json", ours, []string{ours, leaving, leaving, "[]"}, map[string]cty.Value{"container_id": cty.StringVal(cid)}},
		{"a volume", "/volumes/demo.web", "/volumes", volume(token), []string{volume(token), volume(token), `{"Volumes":[]}`}, nil},
		{"a volume of others that gets its name", "/volumes/demo.web", "/volumes", volume(token), []string{volume("theirs"), volume("theirs")}, nil},
		{"an image", "/images/docker.io/library/box:1", "/images/json", images, []string{images, images, "[]"}, map[string]cty.Value{"ref": cty.StringVal("box:1"), "image_id": cty.StringVal("sha256:one")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.has("demo.web", "exited", mark)
			f.set("GET /containers/json", answer{body: "[]"})
			f.set("GET "+test.list, answer{body: test.before})
			last := test.after[len(test.after)-1]
			f.removes(test.path, test.list, test.after...)
			p := f.open()
			if err := destroys(t.Context(), t, p, cty.ObjectVal(test.prior)); err != nil {
				t.Fatal(err)
			}
			inv, err := p.Observe(t.Context(), providers.Query{})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range inv.Objects {
				if !strings.Contains(last, "theirs") {
					t.Errorf("after the removal, the engine lists %s %s", o.Kind, o.Name)
				}
			}
		})
	}
}

// A container that others are removing already is waited for, and its removal has succeeded.
//
// row E34, of a removal that is under way
func TestRemovalUnderWay(t *testing.T) {
	f := newFake(t)
	f.has("demo.web", "exited", labels("demo.web"))
	p := f.open()
	f.handle("DELETE /containers/"+cid, func(w http.ResponseWriter, _ *http.Request) {
		f.has("demo.web", "removing", labels("demo.web"))
		asked := 0
		f.handle("GET /containers/json", func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked > 2 {
				fmt.Fprint(w, "[]")
				return
			}
			fmt.Fprint(w, asJSON(t, []any{item(cid, "demo.web", "removing", labels("demo.web"))}))
		})
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"message":"removal of container 11 is already in progress"}`)
	})
	if err := destroys(t.Context(), t, p, cty.ObjectVal(map[string]cty.Value{"container_id": cty.StringVal(cid)})); err != nil {
		t.Error(err)
	}
}

// An engine that never lets go of what it has removed fails the step.
func TestRemovalThatStays(t *testing.T) {
	f := newFake(t)
	f.has("demo.web", "exited", labels("demo.web"))
	p := f.open()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.handle("DELETE /containers/"+cid, func(w http.ResponseWriter, _ *http.Request) {
		asked := 0
		f.handle("GET /containers/json", func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked == 3 { // the time of the step is over
				cancel()
			}
			fmt.Fprint(w, asJSON(t, []any{item(cid, "demo.web", "exited", labels("demo.web"))}))
		})
		w.WriteHeader(http.StatusNoContent)
	})
	err := destroys(ctx, t, p, cty.ObjectVal(map[string]cty.Value{"container_id": cty.StringVal(cid)}))
	if err == nil || !strings.Contains(err.Error(), "it was removed, and the engine still lists it") {
		t.Errorf("the step ended with %v", err)
	}
}
