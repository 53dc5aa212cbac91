package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"vmctl/providers"
)

// Containers that bear marks are inspected eight at a time: the engine has as many requests as that at once, and never one more.
//
// row E24, of the requests at once
func TestRequestsInFlight(t *testing.T) {
	const most = 8
	f := newFake(t)
	f.crowd(5*most, 5*most)
	var mu sync.Mutex
	now, highest := 0, 0
	full := make(chan struct{}) // closed once there are eight
	for i := range 5 * most {
		id := fmt.Sprintf("%064x", i+1)
		body := f.answers["GET /containers/"+id+"/json"].body
		f.handle("GET /containers/"+id+"/json", func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			if now, highest = now+1, max(highest, now+1); now == most {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			mu.Unlock()
			select {
			case <-full:
			case <-r.Context().Done():
			}
			mu.Lock()
			now--
			mu.Unlock()
			_, _ = w.Write([]byte(body)) //nolint:errcheck // the client may have left
		})
	}
	inv, err := f.open().Observe(t.Context(), providers.Query{})
	if err != nil || len(inv.Objects) != 5*most || len(inv.Partial) > 0 {
		t.Fatalf("observed %d objects, partial %v, %v", len(inv.Objects), inv.Partial, err)
	}
	if highest != most {
		t.Errorf("the engine had %d requests at once, want %d", highest, most)
	}
}

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
