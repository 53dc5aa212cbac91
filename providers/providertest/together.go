package providertest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"vmctl/providers"
)

func cancelled(s *stage) {
	s.close()
	before := runtime.NumGoroutine()
	s.open()
	dev := s.actor("dev")
	all := dev.create()
	ctx, cancel := context.WithCancel(s.t.Context())
	cancel()
	if _, err := s.provider.Observe(ctx, providers.Query{Known: []providers.Known{dev.known()}}); !errors.Is(err, context.Canceled) {
		s.t.Errorf("observing with an ended context: %v", err)
	}
	for _, d := range all {
		// Whether it is refused or was true already: it returns.
		_, _ = s.do(ctx, d.work) //nolint:errcheck // see above
	}
	running := dev.object()
	c := dev.change(providers.Stop)
	if _, failure := s.do(ctx, dev.work(c, dev.steps(c)[0], running.Fingerprint)); failure == nil {
		if o := dev.object(); !isOff(o) {
			s.t.Errorf("a stop under an ended context says that it stopped, and it is %s", o.State)
		}
	}
	dev.carryOut(dev.change(providers.Destroy), nil)
	s.close()
	// The last instructions of a goroutine come after those that others wait for.
	for range 100_000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	stacks := make([]byte, 1<<20)
	s.t.Errorf("%d goroutines are left, and there were %d:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
}

func concurrent(s *stage) {
	before := s.Traces()
	actors := make([]*actor, 4)
	for i := range actors {
		actors[i] = s.actor(fmt.Sprintf("n%d", i))
	}
	together := func(action providers.Action) {
		s.t.Helper()
		changes := make([]providers.Change, len(actors))
		for i, a := range actors {
			changes[i] = a.change(action)
		}
		failures := make([]*providers.Failure, len(actors))
		var wait sync.WaitGroup
		for i, a := range actors {
			wait.Go(func() { _, failures[i] = a.try(changes[i], nil) })
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
	together(providers.RestartIt)
	together(providers.Destroy)
	same(s.t, "what is left", before, s.Traces())
}
