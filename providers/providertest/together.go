package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"

	"vmctl/providers"
)

func cancelled(s *stage) {
	s.close()
	// Whatever it starts inherits the label.
	label := s.t.Name()
	pprof.Do(s.t.Context(), pprof.Labels("demand", label), func(context.Context) {
		s.open()
		s.cancelled()
		s.close()
	})
	// The last instructions of a goroutine run after it has signalled its end.
	left := goroutines(s, label)
	for range 10_000 {
		if left == "" {
			return
		}
		runtime.Gosched()
		left = goroutines(s, label)
	}
	s.t.Errorf("goroutines are left:\n%s", left)
}

func (s *stage) cancelled() {
	dev := s.actor("dev")
	all := dev.create()
	ctx, cancel := context.WithCancel(s.t.Context())
	cancel()
	if _, err := s.provider.Observe(ctx, providers.Query{Known: []providers.Known{dev.known()}}); !errors.Is(err, context.Canceled) {
		s.t.Errorf("observing with an ended context: %v", err)
	}
	for _, d := range all {
		// The step may be refused or already be true: it returns in any case.
		_, _ = s.do(ctx, d.work) //nolint:errcheck // see above
	}
	running := dev.object()
	c := dev.change(providers.Stop)
	if _, failure := s.do(ctx, dev.work(c, dev.steps(c)[0], running.Fingerprint)); failure == nil {
		if o := dev.object(); !isOff(o) {
			s.t.Errorf("a stop under an ended context says that it stopped, and it is %s", o.State)
		}
	}
	dev.carryOut(dev.change(providers.Destroy))
}

// goroutines returns the stacks of the goroutines with a label.
func goroutines(s *stage, label string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		s.t.Fatal(err)
	}
	var left []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, fmt.Sprintf("labels: {%q:%q}", "demand", label)) {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}

func concurrent(s *stage) {
	before := s.Traces()
	actors := make([]*actor, 3)
	for i := range actors {
		actors[i] = s.actor(fmt.Sprintf("n%d", i))
	}
	together := func(action providers.Action) {
		s.t.Helper()
		changes := make([]providers.Change, len(actors))
		for i, a := range actors {
			changes[i] = a.change(action)
		}
		failures := make([]*providers.Problem, len(actors))
		var wait sync.WaitGroup
		for i, a := range actors {
			wait.Go(func() { _, failures[i] = a.try(changes[i]) })
		}
		wait.Wait()
		for i, f := range failures {
			if f != nil {
				s.t.Fatalf("%s of %s: %v", action, actors[i].name, f)
			}
		}
	}
	together(providers.Create)
	for _, a := range actors {
		a.checkMade(a.object())
	}
	together(providers.Stop)
	together(providers.Destroy)
	same(s.t, "what is left", before, s.Traces())
}
