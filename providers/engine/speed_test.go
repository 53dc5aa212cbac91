package engine_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vmctl/providers"
)

// Containers that bear marks are inspected eight at a time: the engine has as many requests as that at once, and never one more.
//
// row E24, of the requests at once
func TestRequestsInFlight(t *testing.T) {
	const most = 8
	synctest.Test(t, func(t *testing.T) { // nothing in here leaves the process: it is known when nothing goes on
		f := &fake{t: t, answers: map[string]answer{"GET /_ping": {body: "OK"}, "HEAD /_ping": {}, "GET /volumes": {body: `{"Volumes":[]}`}}}
		f.crowd(5*most, 5*most)
		var now atomic.Int32
		release := make(chan struct{})
		for i := range 5 * most {
			path := fmt.Sprintf("GET /containers/%064x/json", i+1)
			body := f.answers[path].body
			f.handle(path, func(w http.ResponseWriter, _ *http.Request) {
				now.Add(1)
				<-release
				_, _ = io.WriteString(w, body) //nolint:errcheck // the client may have left
			})
		}
		l := make(pipes)
		ended := make(chan struct{})
		server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, ended) })}
		go func() { _ = server.Serve(l) }() //nolint:errcheck // it is closed
		f.dials = map[string]func(context.Context) (net.Conn, error){"engine": l.dial}
		p := f.open()
		done := make(chan struct{})
		go func() {
			defer close(done)
			inv, err := p.Observe(t.Context(), providers.Query{})
			if err != nil || len(inv.Objects) != 5*most || len(inv.Partial) > 0 {
				t.Errorf("observed %d objects, partial %v, %v", len(inv.Objects), inv.Partial, err)
			}
		}()
		synctest.Wait()
		if got := now.Load(); got != most {
			t.Errorf("the engine has %d requests at once, want %d", got, most)
		}
		close(release)
		<-done
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The lists of all kinds are asked for at once: none of them waits for the answer to another one.
//
// row E24, of lists at once
func TestListsAtOnce(t *testing.T) {
	f := newFake(t)
	var asked sync.WaitGroup
	lists := map[string]string{"/images/json": "[]", "/volumes": `{"Volumes":[]}`, "/networks": "[]", "/containers/json": "[]"}
	asked.Add(len(lists))
	for path, body := range lists {
		f.handle("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			asked.Done()
			all := make(chan struct{})
			go func() {
				asked.Wait()
				close(all)
			}()
			select {
			case <-all:
				_, _ = io.WriteString(w, body) //nolint:errcheck // the client may have left
			case <-r.Context().Done(): // the other lists wait for this answer
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if inv, err := f.open().Observe(ctx, providers.Query{}); err != nil || len(inv.Partial) > 0 {
		t.Errorf("observed with %v, partial %v", err, inv.Partial)
	}
}

// pipes is a listener for connections inside of this process.
type pipes chan net.Conn

func (l pipes) dial(context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	l <- there
	return here, nil
}

// Accept implements net.Listener.
func (l pipes) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close implements net.Listener.
func (l pipes) Close() error { close(l); return nil }

// Addr implements net.Listener.
func (pipes) Addr() net.Addr { return &net.UnixAddr{} }

// BenchmarkLook observes 1,000 containers, 1,000 images and 200 volumes of an engine that takes a millisecond for each answer.
func BenchmarkLook(b *testing.B) {
	for _, ours := range []int{0, 30, 1000} {
		b.Run(fmt.Sprintf("%d ours", ours), func(b *testing.B) {
			f := newFake(b)
			f.delay = time.Millisecond
			f.crowd(1000, ours)
			f.set("GET /images/json", answer{body: "[" + repeated(1000, `{"Id":"sha256:%064x","RepoTags":["demo/box:%[1]d"]}`) + "]"})
			f.set("GET /volumes", answer{body: `{"Volumes":[` + repeated(200, `{"Name":"v%d","Driver":"local","Labels":null}`) + `],"Warnings":null}`})
			p := f.open()
			for b.Loop() {
				if inv, err := p.Observe(b.Context(), providers.Query{}); err != nil || len(inv.Objects) != 2200 || len(inv.Partial) > 0 {
					b.Fatalf("observed %d objects, partial %v, %v", len(inv.Objects), inv.Partial, err)
				}
			}
		})
	}
}

// repeated returns a list of n objects, each with its number.
func repeated(n int, object string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(object, i+1)
	}
	return strings.Join(all, ",")
}
