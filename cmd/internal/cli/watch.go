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

// logFailure logs the parts of a failure that are too long for the screen: messages that were
// cut, and the stack of a provider that panicked.
func (a *app) logFailure(ctx context.Context, doing string, err error) {
	var long *providers.LongError
	if errors.As(err, &long) {
		a.logLong(ctx, doing, append([]string{long.Err.Error()}, long.Seen...)...)
	}
	var panicked *providers.PanicError
	if errors.As(err, &panicked) {
		a.logPanic(ctx, doing, panicked)
	}
}

// logLong logs messages that people see cut.
func (a *app) logLong(ctx context.Context, doing string, texts ...string) {
	for _, text := range texts {
		a.log().LogAttrs(ctx, slog.LevelDebug, "a message that was cut", slog.String("doing", doing), slog.String("error", text))
	}
}

// logPanic logs the facts that a report of a panic needs, whatever the level of the log: the same
// command may not panic again.
func (a *app) logPanic(ctx context.Context, doing string, p *providers.PanicError) {
	log := newLog(a.stderr, min(a.global.level, levelError), a.env.Now)
	log.LogAttrs(ctx, levelError, "a provider panicked", slog.String("doing", doing), errAttr(p),
		slog.String("version", a.env.Build.Version), slog.String("go", a.env.Build.Go), slog.String("platform", a.env.Build.Platform),
		slog.String("stack", p.Stack))
}

// logObserved logs where providers panicked while they were asked for facts or steps, and the
// reasons that were cut.
func (a *app) logObserved(ctx context.Context, world *planner.World) {
	for _, system := range world.Systems() {
		a.logLong(ctx, "observe "+system.String(), system.Long...)
		if system.Panic != nil {
			a.logPanic(ctx, "ask "+system.String(), system.Panic)
		}
	}
}
