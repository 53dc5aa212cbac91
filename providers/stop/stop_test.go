package stop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/providers"
	"vmctl/providers/providertest"
	"vmctl/providers/stop"
)

// world is a clock and a target in one: time passes only while somebody sleeps.
type world struct {
	now      time.Duration
	look     func(w *world) (stop.Observation, error)
	request  func(w *world) error
	force    func(w *world) error
	asleep   func(w *world)
	calls    []string
	requests int
	looks    int // as a test counts them
	forced   bool
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (w *world) Look(context.Context) (stop.Observation, error) { return w.look(w) }

func (w *world) Request(context.Context) error {
	w.requests++
	w.calls = append(w.calls, fmt.Sprintf("request at %s", w.now))
	if w.request == nil {
		return nil
	}
	return w.request(w)
}

func (w *world) Force(context.Context) error {
	w.forced = true
	w.calls = append(w.calls, fmt.Sprintf("force at %s", w.now))
	if w.force == nil {
		return nil
	}
	return w.force(w)
}

func (w *world) clock() stop.Clock {
	return stop.Clock{
		Now: func() time.Time { return epoch.Add(w.now) },
		Sleep: func(ctx context.Context, d time.Duration) error {
			if w.asleep != nil {
				w.asleep(w)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			w.now += d
			return nil
		},
	}
}

func runs() (stop.Observation, error) {
	return stop.Observation{Verdict: stop.Runs, Evidence: "running"}, nil
}

func gone(how providers.How, evidence string) (stop.Observation, error) {
	return stop.Observation{Verdict: stop.Gone, How: how, Evidence: evidence}, nil
}

func policy() stop.Policy {
	return stop.Policy{
		Grace: 30 * time.Second, ForceWait: 10 * time.Second, Again: 12 * time.Second, Poll: time.Second,
		StillSays: providers.Vmctl("vm", "stop", "vm.dev"),
	}
}

// row A36
// row A37
func TestStop(t *testing.T) {
	for _, tc := range []struct {
		name   string
		world  world
		policy func(*stop.Policy)
		want   string
	}{
		{
			name: "a guest that hears",
			world: world{look: func(w *world) (stop.Observation, error) {
				if w.now >= 3*time.Second {
					return gone("", "shut off (shutdown)")
				}
				return runs()
			}},
			want: `
request at 0s
graceful
requested after 0s
gone after 3s: shut off (shutdown)`,
		},
		{
			name: "a guest that hears the second request",
			world: world{look: func(w *world) (stop.Observation, error) {
				if w.requests == 2 {
					return gone(providers.Graceful, "shut off (shutdown)")
				}
				return runs()
			}},
			want: `
request at 0s
request at 12s
graceful
requested after 0s
gone after 13s: shut off (shutdown)`,
		},
		// row L57
		{
			name: "looks that fail for a moment",
			world: world{look: func(w *world) (stop.Observation, error) {
				w.looks++
				switch {
				case w.looks == 1:
					return runs()
				case w.looks <= 3:
					return stop.Observation{}, errors.New("no daemon")
				}
				return gone("", "shut off (shutdown)")
			}},
			want: `
request at 0s
graceful
requested after 0s
gone after 2s: shut off (shutdown)`,
		},
		{
			name: "looks that fail for a moment before force, and after it",
			world: world{look: func(w *world) (stop.Observation, error) {
				if w.now == 30*time.Second {
					w.looks++
				}
				switch {
				case w.forced && w.now >= 33*time.Second:
					return gone("", "shut off (destroyed)")
				case w.forced, w.now == 30*time.Second && w.looks == 2:
					return stop.Observation{}, errors.New("no daemon")
				}
				return runs()
			}},
			policy: func(p *stop.Policy) { p.Again = 0 },
			want: `
request at 0s
force at 31s
forced
requested after 0s
still running 30s after the request
forced after 31s
gone after 33s: shut off (destroyed)`,
		},
		{
			name: "one that ends late, between the grace and force: not forced",
			world: world{look: func(w *world) (stop.Observation, error) {
				if w.now >= 30*time.Second {
					w.looks++
				}
				if w.looks == 2 {
					return gone("", "shut off (shutdown)")
				}
				return runs()
			}},
			policy: func(p *stop.Policy) { p.Again = 0 },
			want: `
request at 0s
graceful
requested after 0s
still running 30s after the request
gone after 30s: shut off (shutdown)`,
		},
		// row X02
		{
			name: "its number belongs to another when it would be forced: the other is not touched",
			world: world{look: func(w *world) (stop.Observation, error) {
				if w.now >= 30*time.Second {
					w.looks++
				}
				if w.looks == 2 {
					return gone("", "pid 7 belongs to another process now")
				}
				return runs()
			}},
			policy: func(p *stop.Policy) { p.Again = 0 },
			want: `
request at 0s
graceful
requested after 0s
still running 30s after the request
gone after 30s: pid 7 belongs to another process now`,
		},
		// row L02
		{
			name: "a deaf guest is forced after the grace",
			world: world{look: func(w *world) (stop.Observation, error) {
				if w.forced {
					return gone(providers.Forced, "shut off (destroyed)")
				}
				return runs()
			}},
			policy: func(p *stop.Policy) { p.Again = 0 },
			want: `
request at 0s
force at 30s
forced
requested after 0s
still running 30s after the request
forced after 30s
gone after 30s: shut off (destroyed)`,
		},
		{
			name: "force that reports an error and worked",
			world: world{
				look: func(w *world) (stop.Observation, error) {
					if w.forced {
						return gone("", "shut off")
					}
					return runs()
				},
				force: func(*world) error { return errors.New("domain is not running") },
			},
			policy: func(p *stop.Policy) { p.Again = 0 },
			want: `
request at 0s
force at 30s
forced
requested after 0s
still running 30s after the request
forced after 30s
force reported: domain is not running
gone after 30s: shut off`,
		},
		{
			name:  "gone already",
			world: world{look: func(*world) (stop.Observation, error) { return gone(providers.Forced, "shut off (destroyed)") }},
			want: `
already
shut off (destroyed)`,
		},
		{
			name:   "force is forbidden: never called stopped",
			world:  world{look: func(*world) (stop.Observation, error) { return runs() }},
			policy: func(p *stop.Policy) { p.Forbidden = true; p.Again = 0 },
			want: `
request at 0s
timeout still_running: stop: it is still running after 30s (running)
seen: requested after 0s
seen: still running 30s after the request
next: vmctl vm stop vm.dev`,
		},
		{
			name:   "force does not work either",
			world:  world{look: func(*world) (stop.Observation, error) { return runs() }},
			policy: func(p *stop.Policy) { p.Again = 0 },
			want: `
request at 0s
force at 30s
failed still_running: stop: it is still running after 40s (running)
seen: requested after 0s
seen: still running 30s after the request
seen: forced after 30s
next: vmctl vm stop vm.dev`,
		},
		{
			name: "another one in its place is never touched",
			world: world{look: func(*world) (stop.Observation, error) {
				return stop.Observation{Verdict: stop.Other, Evidence: "its mark names vm.b"}, nil
			}},
			want: `stale not_the_same: stop: it is not the one that was to be stopped: its mark names vm.b`,
		},
		{
			name: "another one in its place when it would be forced",
			world: world{look: func(w *world) (stop.Observation, error) {
				if w.now >= 30*time.Second && w.requests > 0 {
					w.requests = -1
					return runs()
				}
				if w.requests < 0 {
					return stop.Observation{Verdict: stop.Other, Evidence: "another UUID"}, nil
				}
				return runs()
			}},
			policy: func(p *stop.Policy) { p.Again = 0 },
			want: `
request at 0s
stale not_the_same: stop: it is not the one that was to be stopped: another UUID
seen: requested after 0s
seen: still running 30s after the request`,
		},
		{
			name:  "what cannot be read is not touched",
			world: world{look: func(*world) (stop.Observation, error) { return stop.Observation{}, errors.New("no daemon") }},
			want:  `failed unreadable: stop: what runs cannot be read, and nothing was done: no daemon`,
		},
		{
			name: "unreadable after the grace: not forced, not called stopped",
			world: world{look: func(w *world) (stop.Observation, error) {
				if w.requests > 0 {
					return stop.Observation{}, errors.New("no daemon")
				}
				return runs()
			}},
			policy: func(p *stop.Policy) { p.Again = 0 },
			want: `
request at 0s
failed not_confirmed: stop: could not confirm that it stopped: no daemon
seen: requested after 0s`,
		},
		{
			name: "unreadable when it would be forced: not forced",
			world: world{look: func(w *world) (stop.Observation, error) {
				if w.now >= 30*time.Second {
					w.requests++
				}
				if w.requests > 2 {
					return stop.Observation{}, errors.New("no daemon")
				}
				return runs()
			}},
			policy: func(p *stop.Policy) { p.Again = 0 },
			want: `
request at 0s
refused unverified: stop: it could not be verified before it was forced, so it was not: no daemon
seen: requested after 0s
seen: still running 30s after the request`,
		},
		{
			name: "unreadable after force: not called stopped",
			world: world{look: func(w *world) (stop.Observation, error) {
				if w.forced {
					return stop.Observation{}, errors.New("no daemon")
				}
				return runs()
			}},
			policy: func(p *stop.Policy) { p.Again = 0 },
			want: `
request at 0s
force at 30s
failed not_confirmed: stop: could not confirm that it stopped: no daemon
seen: requested after 0s
seen: still running 30s after the request
seen: forced after 30s`,
		},
		{
			name: "a request that fails is evidence, and force follows",
			world: world{
				look: func(w *world) (stop.Observation, error) {
					if w.forced {
						return gone("", "shut off (destroyed)")
					}
					return runs()
				},
				request: func(*world) error { return errors.New("monitor is busy") },
			},
			policy: func(p *stop.Policy) { p.Again = 0 },
			want: `
request at 0s
force at 30s
forced
requested after 0s
request failed: monitor is busy
still running 30s after the request
forced after 30s
gone after 30s: shut off (destroyed)`,
		},
		{
			name: "what cannot hear is forced at once",
			world: world{look: func(w *world) (stop.Observation, error) {
				if w.forced {
					return gone("", "shut off (destroyed)")
				}
				return stop.Observation{Verdict: stop.Runs, Evidence: "paused (I/O error)", Deaf: true}, nil
			}},
			want: `
force at 0s
forced
paused (I/O error): it cannot hear a request
forced after 0s
gone after 0s: shut off (destroyed)`,
		},
		{
			name: "what cannot hear and must not be forced",
			world: world{look: func(*world) (stop.Observation, error) {
				return stop.Observation{Verdict: stop.Runs, Evidence: "paused (I/O error)", Deaf: true}, nil
			}},
			policy: func(p *stop.Policy) { p.Forbidden = true },
			want: `
timeout still_running: stop: it is still running after 0s (paused (I/O error))
seen: paused (I/O error): it cannot hear a request
next: vmctl vm stop vm.dev`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := policy()
			if tc.policy != nil {
				tc.policy(&p)
			}
			got := tc.world.stop(t.Context(), p)
			if diff := cmp.Diff(strings.TrimSpace(tc.want), got); diff != "" {
				t.Errorf("what happened (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStopWhenTheContextEnds(t *testing.T) {
	for _, tc := range []struct {
		name string
		late func(w *world) (stop.Observation, error)
		want string
	}{
		{
			name: "still running",
			late: func(*world) (stop.Observation, error) { return runs() },
			want: `
request at 0s
timeout still_running: stop: it is still running after 5s (running)
seen: requested after 0s
seen: the wait was ended: told to hurry
next: vmctl vm stop vm.dev`,
		},
		{
			name: "it went after all",
			late: func(*world) (stop.Observation, error) { return gone(providers.Graceful, "shut off (shutdown)") },
			want: `
request at 0s
graceful
requested after 0s
gone after 5s: shut off (shutdown)`,
		},
		{
			name: "unreadable",
			late: func(*world) (stop.Observation, error) { return stop.Observation{}, errors.New("no daemon") },
			want: `
request at 0s
failed not_confirmed: stop: could not confirm that it stopped: no daemon
seen: requested after 0s`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			w := world{
				look: func(w *world) (stop.Observation, error) {
					if ctx.Err() != nil {
						return tc.late(w)
					}
					return runs()
				},
				asleep: func(w *world) {
					if w.now >= 5*time.Second {
						cancel(errors.New("told to hurry"))
					}
				},
			}
			got := w.stop(ctx, policy())
			if diff := cmp.Diff(strings.TrimSpace(tc.want), got); diff != "" {
				t.Errorf("what happened (-want +got):\n%s", diff)
			}
		})
	}
}

// stop runs the procedure and returns a log of its calls and messages.
func (w *world) stop(ctx context.Context, p stop.Policy) string {
	r, err := stop.Stop(ctx, w, p, w.clock(), func(providers.Progress) {})
	lines := w.calls
	var f *providers.Problem
	switch {
	case errors.As(err, &f):
		lines = append(lines, fmt.Sprintf("%s %s: %v", f.Outcome, f.Code, f))
		for _, s := range f.Seen {
			lines = append(lines, "seen: "+s)
		}
		for _, s := range providertest.Lines(f.Next) {
			lines = append(lines, "next: "+s)
		}
	case err != nil:
		lines = append(lines, "not a failure: "+err.Error())
	default:
		lines = append(append(lines, string(r.How)), r.Evidence...)
	}
	return strings.Join(lines, "\n")
}
