package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vmctl/providers"
	"vmctl/providers/engine"
	"vmctl/spec"
)

// hung is an engine that accepts connections, reads the requests, and answers none.
type hung struct {
	mu    sync.Mutex
	asked []string
}

// questions returns the requests that it got.
func (h *hung) questions() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

// Run implements providers.Guest.
func (*hung) Run(context.Context, providers.Command) (providers.Output, error) {
	panic("nothing runs a command")
}

// Dial implements providers.Guest.
func (h *hung) Dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		defer far.Close() //nolint:errcheck // the client sees it
		in := bufio.NewReader(far)
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		h.mu.Lock()
		h.asked = append(h.asked, r.Method+" "+r.URL.Path)
		h.mu.Unlock()
		_, _ = io.Copy(io.Discard, in) //nolint:errcheck // until the client leaves
	}()
	return near, nil
}

// Close implements providers.Guest.
func (*hung) Close() error { return nil }

// An engine that accepts and hangs is asked one question for all that is read of it, and its time is over once.
//
// row E29, of an engine that hangs
func TestOneQuestionToAHungEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hung{}
		p, err := engine.Types(engine.Host{})[1].Open(t.Context(), providers.Settings{
			Project: providers.Project{Name: "demo", ID: "lineage"},
			Via:     &providers.Via{Address: here, Enter: func(context.Context) (providers.Guest, error) { return h, nil }},
		})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		inv, err := p.Observe(t.Context(), providers.Query{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(slices.Sorted(maps.Keys(inv.Partial))); got != "[container image network volume]" {
			t.Errorf("partial: %s", got)
		}
		for kind, why := range inv.Partial {
			if !strings.Contains(why.Error(), "deadline exceeded") {
				t.Errorf("%s: %v", kind, why)
			}
		}
		if got := strings.Join(h.questions(), ", "); got != "HEAD /_ping" {
			t.Errorf("the engine was asked %s", got)
		}
		if waited := time.Since(begun); waited != 20*time.Second { // of the clock of this test
			t.Errorf("the answer took %s", waited)
		}
		// A later look asks again, and whoever gives up meanwhile takes nobody along.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		gaveUp := make(chan error, 1)
		go func() {
			_, err := p.Observe(ctx, providers.Query{})
			gaveUp <- err
		}()
		synctest.Wait()
		inv, err = p.Observe(t.Context(), providers.Query{})
		if first := <-gaveUp; first == nil || err != nil || len(inv.Partial) != 4 {
			t.Errorf("the look that was given up ended with %v, the other with %v and is partial in %d kinds", first, err, len(inv.Partial))
		}
		if why := inv.Partial[spec.Image]; why == nil || strings.Contains(why.Error(), "canceled") {
			t.Errorf("the other look says %v", why)
		}
		if got := h.questions(); len(got) != 3 {
			t.Errorf("the engine was asked %s, and was to be asked three times", strings.Join(got, ", "))
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}
