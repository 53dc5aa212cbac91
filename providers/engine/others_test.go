package engine_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// What vmctl has set of a container is told by its record, as of one that an older vmctl has made, or by its label, as of one whose
// record is lost. All else that its image does not give it is of others, and its successor gets it.
//
// row E19, of what is of others
func TestWhatIsOfOthers(t *testing.T) {
	const theirs = `theirs=yes`
	record := containerValues(map[string]string{"gone": "soon"})
	for _, test := range []struct {
		name   string
		prior  cty.Value
		label  string // that lists what vmctl has set of it
		image  answer
		labels map[string]string
		want   string
	}{
		{"the record tells", record, "", ofImage(nil), map[string]string{"gone": "soon", "theirs": "yes"}, theirs},
		{"its label tells", containerValues(nil), `["gone"]`, ofImage(nil), map[string]string{"gone": "soon", "theirs": "yes"}, theirs},
		{"a label that is no list", record, `{`, ofImage(nil), map[string]string{"gone": "soon", "theirs": "yes"}, theirs},
		{"of the image", containerValues(nil), `[]`, ofImage(map[string]string{"version": "1"}), map[string]string{"version": "1", "theirs": "yes"}, theirs},
		{"in place of that of the image", containerValues(nil), `[]`, ofImage(map[string]string{"version": "1"}), map[string]string{"version": "mine"}, "version=mine"},
		{"its image is gone", containerValues(nil), `[]`, answer{status: 404, body: `{"message":"No such image: sha256:one"}`}, map[string]string{"version": "1", "theirs": "yes"}, theirs},
		{"an attribute that the spec lacks", containerValues(nil), `[]`, ofImage(nil), nil, ""}, // drift, which the replacement ends
		{"the spec says another value", containerValues(nil), `[]`, ofImage(nil), map[string]string{"ours": "by hand"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			all := labels("demo.web")
			maps.Copy(all, test.labels)
			if test.label != "" {
				all["vmctl.labels"] = test.label
			}
			one := detail("demo.web", "exited", all)
			one["HostConfig"] = map[string]any{"Memory": 64, "MemorySwap": 64, "CpuQuota": 5000}
			f.set("GET /containers/json", answer{body: asJSON(t, []any{item(cid, "demo.web.vmctl-aaaaaaaa", "exited", all)})})
			f.set("GET /containers/"+cid+"/json", answer{body: asJSON(t, one)})
			f.set("GET /images/sha256:one/json", test.image)
			f.set("GET /images/sha256:two/json", ofImage(map[string]string{"version": "2"}))
			got := f.madeAfter(test.prior)
			if got != test.want {
				t.Errorf("its successor is made with %q, want %q", got, test.want)
			}
		})
	}
}

// ofImage returns the answer of an engine about an image with labels.
func ofImage(labels map[string]string) answer {
	text, err := json.Marshal(map[string]any{"Config": map[string]any{"Labels": labels}})
	if err != nil {
		panic(err)
	}
	return answer{body: string(text)}
}

// containerValues are the values of container.web with labels.
func containerValues(labels map[string]string) cty.Value {
	all := map[string]cty.Value{"image": cty.StringVal("image.box"), "state": cty.StringVal("created"), "restart": cty.StringVal("no"), "labels": cty.MapValEmpty(cty.String)}
	some := map[string]cty.Value{}
	for name, value := range labels {
		some[name] = cty.StringVal(value)
	}
	if len(some) > 0 {
		all["labels"] = cty.MapVal(some)
	}
	return cty.ObjectVal(all)
}

// madeAfter makes the successor of the container that the engine has, which waits, and returns what others have set of it.
func (f *fake) madeAfter(prior cty.Value) string {
	f.t.Helper()
	p := f.open()
	const next = "bbbbbbbb-0000-8000-8000-000000000000"
	want := containerValues(map[string]string{"ours": "new"})
	old := providers.Object{Kind: web.Kind, ID: token, Name: "demo.web", Attrs: cty.ObjectVal(map[string]cty.Value{"state": cty.StringVal("created")})}
	steps, err := p.Steps(providers.Change{
		Address: web, Kind: web.Kind, Action: providers.ReplaceIt, Name: "web", ID: next, Object: &old, Prior: prior, Want: want,
		Edits: []providers.Edit{{Path: "labels"}},
	})
	i := slices.IndexFunc(steps, func(s providers.Step) bool { return s.Phase == providers.PhaseMake })
	if err != nil || i < 0 {
		f.t.Fatalf("steps %v, %v", steps, err)
	}
	f.set("POST /containers/create", answer{status: 201, body: `{"Id":"` + cid + `"}`})
	w := providers.Work{Step: steps[i], Want: want, Uses: map[spec.Address]providers.Used{{Kind: spec.Image, Name: "box"}: {ID: "sha256:two"}}}
	_, _ = p.Do(f.t.Context(), w, func(providers.Progress) {}) //nolint:errcheck // the engine does not show what it made
	for _, request := range f.asked {
		body, is := strings.CutPrefix(request, "POST /containers/create ")
		if !is {
			continue
		}
		var sent struct {
			Labels     map[string]string
			HostConfig struct{ Memory, CPUQuota int64 }
		}
		if err := json.Unmarshal([]byte(body), &sent); err != nil {
			f.t.Fatal(err)
		}
		if sent.Labels["ours"] != "new" || sent.Labels["vmctl.labels"] != `["ours"]` {
			f.t.Errorf("it is made with %v", sent.Labels)
		}
		var all []string
		for _, name := range slices.Sorted(maps.Keys(sent.Labels)) {
			if name != "ours" && !strings.HasPrefix(name, "vmctl.") {
				all = append(all, name+"="+sent.Labels[name])
			}
		}
		if sent.HostConfig.Memory != 0 || sent.HostConfig.CPUQuota != 5000 {
			f.t.Errorf("it is made with the limits %+v, want the quota that others have set, and no limit of memory", sent.HostConfig)
		}
		return strings.Join(all, " ")
	}
	f.t.Fatalf("nothing was made: %q", f.asked)
	return ""
}
