package engine_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/providers"
	"vmctl/spec"
)

// crowd lets the engine show many containers. ours of them bear a mark.
func (f *fake) crowd(all, ours int) {
	var items []any
	for i := range all {
		id, name := fmt.Sprintf("%064x", i+1), fmt.Sprintf("c%d", i)
		var mark map[string]string
		if i < ours {
			mark = labels(name)
			mark["vmctl.token"] = fmt.Sprintf("%08x-0000-8000-8000-000000000000", i)
		}
		items = append(items, item(id, name, "running", mark))
		one := detail(name, "running", mark)
		one["Id"] = id
		f.set("GET /containers/"+id+"/json", answer{body: asJSON(f.t, one)})
	}
	f.set("GET /containers/json", answer{body: asJSON(f.t, items)})
}

// A look at an engine reads one list of each kind, and each container that bears a mark once, however many there are.
//
// row E24, of a refresh, in requests
func TestReadsOfALook(t *testing.T) {
	f := newFake(t)
	f.crowd(1000, 3)
	p := f.open()
	want := map[string]int{"/images/json": 1, "/volumes": 1, "/networks": 1, "/containers/json": 1}
	for i := range 3 {
		want[fmt.Sprintf("/containers/%064x/json", i+1)] = 1
	}
	for range 2 {
		inv, err := p.Observe(t.Context(), providers.Query{})
		if err != nil || len(inv.Objects) != 1000 {
			t.Fatalf("observed %d objects, %v", len(inv.Objects), err)
		}
		if diff := cmp.Diff(want, f.readsOnly()); diff != "" {
			t.Errorf("reads (-want +got):\n%s", diff)
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("the engine was asked %q", f.asked)
	}
}

// An event costs a look at what it names, and no list of the others.
//
// row E24, of an event
func TestReadsOfAnEvent(t *testing.T) {
	f := newFake(t)
	f.crowd(1000, 0)
	listed := make(chan struct{})
	f.handle("GET /events", func(w http.ResponseWriter, r *http.Request) {
		send(t, w, "")
		select {
		case <-listed:
		case <-r.Context().Done():
			return
		}
		id := fmt.Sprintf("%064x", 500)
		one := detail("c499", "paused", nil)
		one["Id"] = id
		f.set("GET /containers/"+id+"/json", answer{body: asJSON(t, one)})
		send(t, w, fmt.Sprintf(`{"Type":"container","Actor":{"ID":%q}}`, id))
		<-r.Context().Done()
	})
	f.watched("changed container c499", func(text string) {
		if text == "listed" {
			f.readsOnly()
			close(listed)
		}
	})
	if diff := cmp.Diff(map[string]int{fmt.Sprintf("/containers/%064x/json", 500): 1}, f.readsOnly()); diff != "" {
		t.Errorf("reads after one event of 1,000 containers (-want +got):\n%s", diff)
	}
}

// A look begins with whole lists, never with events: an event that was lost hides nothing.
//
// row E26
func TestLookNeedsNoEvent(t *testing.T) {
	f := newFake(t)
	p := f.open()
	for _, name := range []string{"one", "two"} {
		f.set("GET /volumes", answer{body: fmt.Sprintf(oneVolume, name)}) // no event tells
		if o := only(t, p); o.Kind != spec.Volume || o.Name != name {
			t.Errorf("observed %s %s, want the volume %s", o.Kind, o.Name, name)
		}
	}
	if n := f.readsOnly()["/events"]; n > 0 {
		t.Errorf("a look has read events %d times", n)
	}
}
