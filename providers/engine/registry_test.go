package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// A plan asks the registry of an image only with pull = "always". Another digest there is an edit; an answer that says nothing is a
// finding, and no edit.
func TestAskRegistries(t *testing.T) {
	const ref = "127.0.0.1:5000/demo/box:1"
	one, two := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("2", 64)
	says := func(digest string) answer { return answer{body: fmt.Sprintf(`{"Descriptor":{"digest":%q}}`, digest)} }
	box := spec.Address{Kind: spec.Image, Name: "box"}
	values := func(ref string, archive cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"ref": cty.StringVal(ref), "archive": archive})
	}
	none := cty.NullVal(cty.String)
	for _, test := range []struct {
		name, pull string
		want       cty.Value
		digests    string
		answer     answer
		says       string
		asks       int
	}{
		{"the same content", "always", values(ref, none), `["127.0.0.1:5000/demo/box@` + one + `"]`, says(one), "", 1},
		{"one of two digests", "always", values(ref, none), `["127.0.0.1:5000/demo/box@` + one + `","127.0.0.1:5000/demo/box@` + two + `"]`, says(two), "", 1},
		{"another content", "always", values(ref, none), `["127.0.0.1:5000/demo/box@` + one + `"]`, says(two), "digest " + one + " " + two + " replace\n", 1},
		{"from no registry", "always", values(ref, none), `null`, says(two), "digest none " + two + " replace\n", 1},
		{"from another registry", "always", values(ref, none), `["example.org/demo/box@` + two + `"]`, says(two), "digest none " + two + " replace\n", 1},
		{"where it is missing", "missing", values(ref, none), `null`, says(two), "", 0},
		{"never", "never", values(ref, none), `null`, says(two), "", 0},
		{"of an archive", "always", values(ref, cty.StringVal("box.tar")), `null`, says(two), "", 0},
		{"another name is wanted", "always", values("127.0.0.1:5000/demo/box:2", none), `null`, says(two), "", 0},
		{"not wanted", "always", cty.NilVal, `null`, says(two), "", 0},
		{"no registry", "always", values(ref, none), `null`, answer{status: 500, body: `{"message":"no such host"}`}, "unasked: no such host\n", 1},
		{"no digest", "always", values(ref, none), `null`, answer{body: `{}`}, "unasked: the engine's answer has no digest\n", 1},
		{"garbage", "always", values(ref, none), `null`, answer{body: `[]`}, "unasked: the engine's answer is no object: \"[]\"\n", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.set("GET /images/json", answer{body: `[{"Id":"sha256:one","RepoTags":["` + ref + `"],"RepoDigests":` + test.digests + `}]`})
			f.set("GET /distribution/"+ref+"/json", test.answer)
			prior := cty.ObjectVal(map[string]cty.Value{"ref": cty.StringVal(ref), "image_id": cty.StringVal("sha256:one")})
			known := providers.Known{
				Address: box, Kind: spec.Image, ID: ref, Name: "demo.box", Prior: prior, Want: test.want,
				Policy: cty.ObjectVal(map[string]cty.Value{"pull": cty.StringVal(test.pull)}),
			}
			inv, err := f.open().Observe(t.Context(), providers.Query{Known: []providers.Known{known}})
			if err != nil || len(inv.Objects) != 1 {
				t.Fatalf("observed %v, %v", inv.Objects, err)
			}
			var got strings.Builder
			for _, e := range inv.Objects[0].Edits {
				before := "none"
				if !e.Before.IsNull() {
					before = e.Before.AsString()
				}
				fmt.Fprintf(&got, "%s %s %s %s\n", e.Path, before, e.After.AsString(), e.Verdict.Applies)
			}
			for _, found := range inv.Objects[0].Findings {
				_, why, _ := strings.Cut(found.Evidence[0], "leads to now: ")
				fmt.Fprintf(&got, "%s: %s\n", found.Kind, why)
			}
			if diff := cmp.Diff(test.says, got.String()); diff != "" {
				t.Errorf("it says (-want +got):\n%s", diff)
			}
			if n := f.readsOnly()["/distribution/"+ref+"/json"]; n != test.asks {
				t.Errorf("the registry was asked %d times, want %d", n, test.asks)
			}
		})
	}
}
