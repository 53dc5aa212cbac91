package engine_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"vmctl/providers"
	"vmctl/providers/engine"
	"vmctl/spec"
)

// fake is an engine that answers what a test says. A path without an answer has an empty list.
type fake struct {
	t       testing.TB
	mu      sync.Mutex
	answers map[string]answer           // by method and path, without the API's version and the query
	asked   []string                    // the requests that change something, with their bodies
	reads   map[string]int              // how often each path was read
	special map[string]http.HandlerFunc // instead of an answer
	server  *httptest.Server
	docker  string        // the folder of Docker's configuration
	delay   time.Duration // before each answer

	dials map[string]func(context.Context) (net.Conn, error) // in place of the connection to the engine, by path
}

type answer struct {
	status int    // 0: 200
	body   string // "hang": none, until the test ends
	cut    bool   // the connection ends in the middle of the body
}

func newFake(t testing.TB) *fake {
	f := &fake{t: t, answers: map[string]answer{
		"GET /_ping": {body: "OK"}, "HEAD /_ping": {}, "GET /info": {body: `{"ID":"E","ServerVersion":"1","DockerRootDir":"/d"}`},
		"GET /volumes": {body: `{"Volumes":[],"Warnings":null}`},
	}}
	ended := make(chan struct{})
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, ended) }))
	t.Cleanup(f.server.Close)
	t.Cleanup(func() { close(ended) })
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request, ended chan struct{}) {
	path := r.URL.Path
	if strings.HasPrefix(path, "/v1.") {
		path = path[strings.Index(path[1:], "/")+1:]
	}
	time.Sleep(f.delay)
	w.Header().Set("Api-Version", "1.41")
	w.Header().Set("Content-Type", "application/json")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	f.mu.Lock()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		f.asked = append(f.asked, r.Method+" "+path+" "+strings.TrimSpace(string(body)))
	} else {
		if f.reads == nil {
			f.reads = map[string]int{}
		}
		f.reads[path]++
	}
	a, known := f.answers[r.Method+" "+path]
	special := f.special[r.Method+" "+path]
	f.mu.Unlock()
	switch {
	case special != nil:
		special(w, r)
		return
	case !known && r.Method == http.MethodGet:
		a.body = "[]"
	case a.body == "hang":
		select {
		case <-ended:
		case <-r.Context().Done():
		}
		return
	case a.cut:
		w.Header().Set("Content-Length", "1000000")
	}
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	_, _ = io.WriteString(w, a.body) //nolint:errcheck // the client may have left
}

// set says what the engine answers.
func (f *fake) set(request string, a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[request] = a
}

// readsOnly returns the paths that were read since the last call, with their numbers, without the questions for the engine's version.
func (f *fake) readsOnly() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.reads
	f.reads = nil
	delete(all, "/_ping")
	return all
}

// handle says what the engine does.
func (f *fake) handle(request string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.special == nil {
		f.special = map[string]http.HandlerFunc{}
	}
	f.special[request] = h
}

// removes lets the engine take the removal of what is at a path. after has the answers to the next requests of a list, in order;
// the last one stays.
func (f *fake) removes(path, list string, after ...string) {
	f.handle("DELETE "+path, func(w http.ResponseWriter, _ *http.Request) {
		f.handle("GET "+list, func(w http.ResponseWriter, _ *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			_, _ = io.WriteString(w, after[0]) //nolint:errcheck // the client may have left
			after = after[min(1, len(after)-1):]
		})
		_, _ = io.WriteString(w, "[]") //nolint:errcheck // see above
	})
}

// Run implements providers.Guest.
func (f *fake) Run(context.Context, providers.Command) (providers.Output, error) {
	panic("nothing runs a command")
}

// Dial implements providers.Guest.
func (f *fake) Dial(ctx context.Context, _, path string) (net.Conn, error) {
	if dial := f.dials[path]; dial != nil {
		return dial(ctx)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", f.server.Listener.Addr().String())
}

// Close implements providers.Guest.
func (f *fake) Close() error { return nil }

var here = spec.Address{Kind: spec.Engine, Name: "here"}

// open opens the provider of what is inside of the engine.
func (f *fake) open() providers.Provider {
	f.t.Helper()
	p, err := engine.Types(engine.Host{Docker: f.docker})[1].Open(f.t.Context(), providers.Settings{
		Project: providers.Project{Name: "demo", ID: "lineage"},
		Via: &providers.Via{
			Address: here,
			Enter:   func(context.Context) (providers.Guest, error) { return f, nil },
		},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			f.t.Error(err)
		}
	})
	return p
}

const (
	token = "aaaaaaaa-0000-8000-8000-000000000000"
	cid   = "1111111111111111111111111111111111111111111111111111111111111111"
)

// labels returns the labels of container.web.
func labels(name string) map[string]string {
	return map[string]string{
		"vmctl.id": "lineage", "vmctl.project": "demo", "vmctl.address": "container.web", "vmctl.token": token, "vmctl.name": name, "vmctl.generation": "3",
	}
}

// item is a container as a list shows it.
func item(id, name, state string, labels map[string]string) map[string]any {
	return map[string]any{"Id": id, "Names": []string{"/" + name}, "State": state, "Labels": labels, "Image": "i", "ImageID": "sha256:one", "Ports": []any{}}
}

// detail is a container as an inspection shows it.
func detail(name, state string, labels map[string]string) map[string]any {
	return map[string]any{
		"Id": cid, "Name": "/" + name, "Image": "sha256:one", "State": map[string]any{"Status": state},
		"Config": map[string]any{"Labels": labels}, "HostConfig": map[string]any{"Memory": 0}, "NetworkSettings": map[string]any{},
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// has makes the engine show one container.
func (f *fake) has(name, state string, labels map[string]string) {
	f.set("GET /containers/json", answer{body: asJSON(f.t, []any{item(cid, name, state, labels)})})
	f.set("GET /containers/"+cid+"/json", answer{body: asJSON(f.t, detail(name, state, labels))})
}
