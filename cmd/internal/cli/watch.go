package cli

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
)

// silence is the time after which a line says that a silent step still runs.
const silence = 10 * time.Second

// watch shows events as they come: on a terminal with the running steps below them, elsewhere
// with a line for a silent step, or as JSON. The caller calls stop after the last event.
func (a *app) watch(ctx context.Context, own view.OwnFlags) (watch func(executor.Event), stop func()) {
	if a.global.json {
		return a.watchJSON(ctx, own), func() {}
	}
	progress := &view.Progress{Screen: a.screen(), Silence: silence}
	if region, ok := a.region(); ok {
		a.stdout.grow(region)
		progress.Live = a.stdout.update
	}
	stopClock := a.everySecond(func() {
		progress.Fit(a.screen().Columns)
		if !a.stdout.behind() {
			progress.Tick(a.env.Now())
		}
	})
	return func(e executor.Event) {
			a.trace(ctx, e)
			progress.Watch(e)
		}, func() {
			stopClock()
			progress.End()
		}
}

// watchJSON writes a line for each event. It also tells people on standard error about an
// interrupt: they may have asked for it.
func (a *app) watchJSON(ctx context.Context, own view.OwnFlags) func(executor.Event) {
	progress := &view.Progress{}
	return func(e executor.Event) {
		a.trace(ctx, e)
		a.line(view.EventJSON(e, own))
		progress.Watch(e)
		if e.Interrupted {
			progress.Halt(a.errScreen(), e)
		}
	}
}

// everySecond calls do every second until stop is called. stop returns once do no longer
// runs.
func (a *app) everySecond(do func()) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				do()
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}

func (a *app) trace(ctx context.Context, e executor.Event) {
	if e.Failure != nil {
		a.logFailure(ctx, e.Step.Op+" "+e.Step.Address.String(), e.Failure)
	}
	a.log().Log(ctx, levelTrace, "event",
		slog.String("kind", string(e.Kind)), slog.String("address", e.Step.Address.String()), slog.String("op", e.Step.Op))
}

// logFailure logs the parts of a failure that are too long for the screen: a message that was
// cut, and the stack of a provider that panicked.
func (a *app) logFailure(ctx context.Context, doing string, err error) {
	var long *providers.LongError
	if errors.As(err, &long) {
		a.log().Debug("a message that was cut", slog.String("doing", doing), errAttr(long.Err))
	}
	var panicked *providers.PanicError
	if errors.As(err, &panicked) {
		a.log().LogAttrs(ctx, levelError, "a provider panicked", slog.String("doing", doing), errAttr(panicked), slog.String("stack", panicked.Stack))
	}
}

// logPanics writes where providers panicked while they were asked for facts or steps.
func (a *app) logPanics(ctx context.Context, world *planner.World) {
	for _, system := range world.Systems() {
		if system.Panic != nil {
			a.logFailure(ctx, "ask "+system.String(), system.Panic)
		}
	}
}
