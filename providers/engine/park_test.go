package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

var web = spec.Address{Kind: spec.Container, Name: "web"}

// shows makes the engine show several containers.
func (f *fake) shows(all ...map[string]any) {
	var items []any
	for _, c := range all {
		items = append(items, c)
		one := detail(c["Names"].([]string)[0][1:], c["State"].(string), c["Labels"].(map[string]string))
		one["Id"] = c["Id"]
		f.set("GET /containers/"+c["Id"].(string)+"/json", answer{body: asJSON(f.t, one)})
	}
	f.set("GET /containers/json", answer{body: asJSON(f.t, items)})
}

// A replacement that was cut short leaves the old container under its parking name: it gets its name back, or is a leftover
// of its successor. A container of another name is a copy.
//
// row E36, of parked containers
func TestObserveParked(t *testing.T) {
	const parking = "demo.web.vmctl-aaaaaaaa"
	other := strings.Repeat("2", 64)
	successor := labels("demo.web")
	successor["vmctl.token"] = "bbbbbbbb-0000-8000-8000-000000000000"
	known := []providers.Known{{Address: web, Kind: spec.Container, ID: token, Name: "demo.web"}}
	wanted := []providers.Known{{Address: web, Kind: spec.Container, ID: "bbbbbbbb-0000-8000-8000-000000000000", Name: "demo.web"}}
	old := item(cid, parking, "exited", labels("demo.web"))
	for _, test := range []struct {
		name  string
		known []providers.Known
		all   []map[string]any
		want  string
	}{
		{"recorded", known, []map[string]any{old}, "demo.web aaaaaaaa of container.web created\npartial \n"},
		{"its successor is recorded and gone", wanted, []map[string]any{old}, parking + " 11111111 created\n"},
		{"neither the spec nor the state knows it", nil, []map[string]any{old}, parking + " aaaaaaaa of container.web created\n"},
		{"with a successor", wanted, []map[string]any{old, item(other, "demo.web", "running", successor)}, "demo.web bbbbbbbb of container.web running\n" + parking + " 11111111 created\nleftover " + parking + "\n"},
		{"of another name", known, []map[string]any{item(cid, "demo.web.vmctl-bbbbbbbb", "exited", labels("demo.web"))}, "demo.web.vmctl-bbbbbbbb 11111111 copy created\ncopy demo.web.vmctl-bbbbbbbb\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.shows(test.all...)
			inv, err := f.open().Observe(t.Context(), providers.Query{Known: test.known})
			if err != nil {
				t.Fatal(err)
			}
			got := show(inv, spec.Container)
			for _, o := range inv.Objects {
				for _, finding := range o.Findings {
					got += fmt.Sprintf("%s %s\n", finding.Kind, finding.Object)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("containers (-want +got):\n%s", diff)
			}
		})
	}
}

// A step removes nothing on an answer that cannot be read, or that says something else than the plan.
//
// row E30, of steps
func TestNothingIsRemovedOnABadAnswer(t *testing.T) {
	list, one := "GET /containers/json", "GET /containers/"+cid+"/json"
	for _, test := range []struct {
		name, request string
		answer        answer
		removes       bool
	}{
		{"as the plan saw it", "GET /nothing", answer{}, true},
		{"null", list, answer{body: "null"}, false},
		{"garbage", list, answer{body: "<html>"}, false},
		{"half of a list", list, answer{body: `[{"Id":"`}, false},
		{"a connection that ends", list, answer{body: "[", cut: true}, false},
		{"a failure", list, answer{status: 500, body: `{"message":"no"}`}, false},
		{"a hang", list, answer{body: "hang"}, false},
		{"nothing about it", one, answer{body: "{}"}, false},
		{"null about it", one, answer{body: "null"}, false},
		{"a config that is null", one, answer{body: fmt.Sprintf(`{"Id":%q,"Name":"/demo.web","State":{"Status":"exited"},"Config":null,"HostConfig":null}`, cid)}, false},
		{"another state", one, answer{body: asJSON(t, detail("demo.web", "running", labels("demo.web")))}, false},
		{"a state of a later engine", one, answer{body: asJSON(t, detail("demo.web", "foo", labels("demo.web")))}, false},
		{"the marks of others", one, answer{body: asJSON(t, detail("demo.web", "exited", map[string]string{"vmctl.token": "theirs"}))}, false},
		{"a hang about it", one, answer{body: "hang"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.has("demo.web", "exited", labels("demo.web"))
			p := f.open()
			o := only(t, p)
			f.set(test.request, test.answer)
			f.removes("/containers/"+cid, "/containers/json", "[]")
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if test.answer.body == "hang" {
				time.AfterFunc(100*time.Millisecond, cancel)
			}
			steps, err := p.Steps(providers.Change{Address: web, Kind: spec.Container, Action: providers.Destroy, Name: o.Name, ID: o.ID, Object: &o})
			if err != nil || len(steps) != 1 {
				t.Fatalf("steps %v, %v", steps, err)
			}
			w := providers.Work{Step: steps[0], Expect: o.Fingerprint, Prior: cty.ObjectVal(map[string]cty.Value{"container_id": cty.StringVal(cid)})}
			_, err = p.Do(ctx, w, func(providers.Progress) {})
			removed := strings.Contains(strings.Join(f.asked, "\n"), "DELETE")
			if removed != test.removes || test.removes != (err == nil) {
				t.Errorf("asked %q, error %v", f.asked, err)
			}
		})
	}
}
