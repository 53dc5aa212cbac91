package engine_test

import (
	"net/http"
	"strings"
	"testing"

	"vmctl/providers"
)

// An object is removed only as it was shown, without force.
//
// row E57, of cleanup
func TestCleanUp(t *testing.T) {
	const path = "/containers/" + cid
	for _, test := range []struct {
		name string
		set  func(f *fake) // after it was observed
		want string        // the result, or a part of the error
		asks string
	}{
		{"as it was", func(f *fake) { f.removes(path, "/containers/json", "[]") }, string(providers.Done), "DELETE " + path},
		{"gone when it is looked for", func(f *fake) { f.set("GET /containers/json", answer{body: "[]"}) }, string(providers.AlreadyGone), ""},
		{"gone when it is removed", func(f *fake) {
			f.set("DELETE "+path, answer{status: http.StatusNotFound, body: `{"message":"No such container"}`})
		}, string(providers.AlreadyGone), "DELETE " + path},
		{"it runs by now", func(f *fake) { f.has("theirs", "running", nil) }, "it is not as it was shown any more", ""},
		{"another of that name", func(f *fake) {
			f.set("GET /containers/json", answer{body: asJSON(f.t, []any{item(strings.Repeat("2", 64), "theirs", "exited", nil)})})
		}, "it is not as it was shown any more", ""},
		{"it cannot be read", func(f *fake) { f.set("GET /containers/json", answer{body: `[{"Id":"x","Names":["/theirs"]}]`}) }, `its ID is "x"`, ""},
		{"no list", func(f *fake) { f.set("GET /containers/json", answer{body: "null"}) }, "the engine gave no list", ""},
		{"in use", func(f *fake) {
			f.set("DELETE "+path, answer{status: http.StatusConflict, body: `{"message":"it is in use"}`})
		}, "it is in use", "DELETE " + path},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.has("theirs", "exited", nil)
			p := f.open()
			o := only(t, p)
			test.set(f)
			cleaner, _ := providers.Ability[providers.Cleaner](p)
			how, err := cleaner.CleanUp(t.Context(), o)
			if err == nil && string(how) != test.want || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, %v, want %q", how, err, test.want)
			}
			if got := strings.TrimSpace(strings.Join(f.asked, "; ")); got != test.asks {
				t.Errorf("the engine was asked %q, want %q", got, test.asks)
			}
		})
	}
}

// One with a mark of vmctl's is inspected again, and a volume that a driver does not show is not gone.
func TestCleanUpOfMarkedOnes(t *testing.T) {
	f := newFake(t)
	f.has("copy", "exited", labels("demo.web"))
	f.removes("/containers/"+cid, "/containers/json", "[]")
	p := f.open()
	o := only(t, p)
	cleaner, _ := providers.Ability[providers.Cleaner](p)
	if how, err := cleaner.CleanUp(t.Context(), o); err != nil || how != providers.Done {
		t.Errorf("a copy: %q, %v", how, err)
	}
	f.set("GET /volumes", answer{body: `{"Volumes":[],"Warnings":["no answer"]}`})
	if how, err := cleaner.CleanUp(t.Context(), providers.Object{Kind: "volume", Name: "v"}); err == nil {
		t.Errorf("a volume that may be there: %q", how)
	}
}
