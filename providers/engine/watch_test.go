package engine_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"vmctl/providers"
)

var errEnough = errors.New("enough")

// watched returns the changes that a watch tells, up to the first one that is as last says, and passes each one on.
func (f *fake) watched(last string, tell func(text string)) string {
	f.t.Helper()
	watcher, able := providers.Ability[providers.Watcher](f.open())
	if !able {
		f.t.Fatal("an engine cannot be watched")
	}
	var all []string
	err := watcher.Watch(f.t.Context(), func(n providers.Notice) error {
		text := strings.TrimSpace(fmt.Sprintf("%s %s %s", n.Change, n.Object.Kind, n.Object.Name))
		all = append(all, text)
		tell(text)
		if text == last {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		f.t.Errorf("the watch ended with %v", err)
	}
	return strings.Join(all, "\n")
}

// send sends an event to the one who listens.
func send(t *testing.T, w http.ResponseWriter, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(w, line); err != nil {
		t.Errorf("the event is not heard: %v", err)
	}
	if err := http.NewResponseController(w).Flush(); err != nil {
		t.Errorf("the event is not heard: %v", err)
	}
}

const oneVolume = `{"Volumes":[{"Name":"%s","Driver":"local","Mountpoint":"/d","Scope":"local"}],"Warnings":null}`

// Events are heard while everything is listed, however many there are: an engine forgets those of a listener that is behind.
//
// row E20, of a watch
func TestWatchHearsWhileItLists(t *testing.T) {
	f := newFake(t)
	f.handle("GET /_ping", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Date", "Thu, 01 Jan 2037 00:00:10 GMT") // far from the time of this host
	})
	sent := make(chan struct{})
	f.handle("GET /events", func(w http.ResponseWriter, r *http.Request) {
		if since := r.URL.Query().Get("since"); since != "2114380810" {
			t.Errorf("the events are asked since %s, and the engine's clock is at 2114380810", since)
		}
		event := `{"Type":"container","Actor":{"ID":"` + strings.Repeat("2", 64) + `"},"padding":"` + strings.Repeat("x", 4096) + `"}`
		for range 5000 { // more than a connection holds
			send(t, w, event)
		}
		f.set("GET /volumes", answer{body: fmt.Sprintf(oneVolume, "late")})
		send(t, w, `{"Type":"volume","Actor":{"ID":"late"}}`)
		close(sent)
		<-r.Context().Done()
	})
	f.handle("GET /images/json", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-sent:
		case <-r.Context().Done():
			t.Error("the events are not heard before the images were listed")
		}
		fmt.Fprint(w, "[]")
	})
	f.set("GET /containers/"+strings.Repeat("2", 64)+"/json", answer{status: http.StatusNotFound, body: "{}"})
	if got, want := f.watched("present volume late", func(string) {}), "present volume late"; got != want {
		t.Errorf("it tells\n%s\nnot\n%s", got, want)
	}
}

// What cannot be read of an event has everything listed again, and so has the end of the events.
//
// row E56, of events that cannot be read
func TestWatchOfGarbage(t *testing.T) {
	f := newFake(t)
	told := make(chan string, 20)
	await := func(r *http.Request, text string) {
		for {
			select {
			case now := <-told:
				if now == text {
					return
				}
			case <-r.Context().Done():
				t.Errorf("it does not tell %q", text)
				return
			}
		}
	}
	var opened atomic.Int32
	f.handle("GET /events", func(w http.ResponseWriter, r *http.Request) {
		send(t, w, "")
		if opened.Add(1) > 1 {
			<-r.Context().Done()
			return
		}
		await(r, "listed")
		f.set("GET /volumes", answer{body: fmt.Sprintf(oneVolume, "one")})
		send(t, w, `["what"]`)
		await(r, "added volume one")
		f.set("GET /volumes", answer{body: fmt.Sprintf(oneVolume, "two")})
		send(t, w, `{"Type":"volu`)
	})
	got := f.watched("added volume two", func(text string) { told <- text })
	if want := "listed\nadded volume one\nlost\nremoved volume one\nadded volume two"; got != want {
		t.Errorf("it tells\n%s\nnot\n%s", got, want)
	}
}
