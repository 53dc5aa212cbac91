package job_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

// schedule lets one of several actors go on at a time, and chooses the next one by its seed: each stops before each of its steps.
type schedule struct {
	mu      sync.Mutex
	changed *sync.Cond
	rng     *rand.Rand
	actors  []*actor
	running *actor // nil: the next one is to be chosen
	order   []string
}

// actor is one of the sides of a schedule.
type actor struct {
	s     *schedule
	name  string
	ready bool // it has come to its next step
	away  bool // it waits for another one, or has ended
}

func newSchedule(seed uint64) *schedule {
	s := &schedule{rng: rand.New(rand.NewPCG(seed, 17))} //nolint:gosec // a schedule is no secret
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *schedule) actor(name string) *actor {
	a := &actor{s: s, name: name}
	s.actors = append(s.actors, a)
	return a
}

// choose lets the next actor go once all that are here have come to a step. The lock is held.
func (s *schedule) choose() {
	var here []*actor
	for _, a := range s.actors {
		if !a.away {
			here = append(here, a)
		}
		if !a.away && !a.ready {
			return
		}
	}
	if s.running == nil && len(here) > 0 {
		s.running = here[s.rng.IntN(len(here))]
		s.order = append(s.order, s.running.name)
	}
	s.changed.Broadcast()
}

// step stops before a step until it is the actor's turn.
func (a *actor) step() {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	if a.s.running == a {
		a.s.running = nil
	}
	a.ready = true
	a.s.choose()
	for a.s.running != a {
		a.s.changed.Wait()
	}
	a.ready = false
}

// leave takes the actor out of the schedule, until it comes back.
func (a *actor) leave() {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	if a.away = true; a.s.running == a {
		a.s.running = nil
	}
	a.s.choose()
}

// back is the opposite of leave.
func (a *actor) back() {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.away = false
}

// beside is a host on which the worker is in this process: a signal to it ends its context.
type beside struct {
	process.Host
	worker   process.Identity
	me       *actor
	signal   func()
	finished <-chan struct{}
	asked    *bool
}

func (b beside) Request(id process.Identity) error {
	if id != b.worker {
		return b.Host.Request(id)
	}
	b.me.step()
	select {
	case <-b.finished:
		return &process.RefusedError{Process: id, Verdict: process.Gone, Reason: "it has ended"}
	default:
	}
	*b.asked = true
	b.signal()
	return nil
}

func (b beside) Wait(ctx context.Context, all ...process.Identity) error {
	if len(all) != 1 || all[0] != b.worker {
		return b.Host.Wait(ctx, all...)
	}
	b.me.leave()
	<-b.finished
	b.me.back()
	return ctx.Err()
}

// A job that is queued is cancelled while its worker takes it, in every order of their steps that a seeded scheduler finds. The command is a
// real process: either it is never started, or it runs and is signalled.
//
// row J17, of a real worker and command, with the request to the worker by its context
func TestInterleavingsOfACancelWithTheWorker(t *testing.T) {
	seeds, seen := 200, map[string]int{}
	if testing.Short() {
		seeds = 60
	}
	worker, err := process.Host{}.Capture(t.Context(), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for seed := range uint64(seeds) { //nolint:gosec // it is positive
		s := newSchedule(seed)
		works, cancels := s.actor("worker"), s.actor("cancel")
		store := job.Store{Dir: root, Owner: lockfile.Owner{PID: os.Getpid()}}
		id := job.ID("j-" + time.Duration(seed).String())
		_, err := store.Create(job.Record{
			ID: id, Agent: job.Plain, Command: []string{"sleep", "3600"}, Dir: root, Grace: job.Duration(time.Minute), Created: time.Now(),
		})
		if err := errors.Join(err, store.WritePrompt(id, nil)); err != nil {
			t.Fatal(err)
		}
		ctx, signal := context.WithCancel(t.Context())
		finished, ready, asked := make(chan struct{}), error(nil), false
		go func() {
			defer close(finished)
			own := store
			own.Before = works.step
			w := job.Worker{
				Store: own, ID: id, Environ: []string{"PATH=" + os.Getenv("PATH")}, Now: time.Now,
				Ready: func(err error) { ready = err },
			}
			_ = w.Run(ctx) //nolint:errcheck // the record tells
			works.leave()
		}()
		own := store
		own.Before = cancels.step
		_, outcome, err := job.Canceller{
			Store: own, By: "ann", Now: time.Now,
			Processes: beside{worker: worker, me: cancels, signal: signal, finished: finished, asked: &asked},
		}.Cancel(t.Context(), id)
		cancels.leave()
		<-finished
		signal()
		r, unread := store.Read(id)
		if err := errors.Join(err, unread); err != nil || r.Status != job.Cancelled || r.Cancel == nil || r.Cancel.By != "ann" {
			t.Fatalf("seed %d (%v): %s, and it is %s (%s): %v; want it cancelled by ann", seed, s.order, outcome, r.Status, r.Reason, err)
		}
		_, missing := os.Lstat(store.Path(id, "stdout")) // which is made for the command
		spawned := missing == nil
		switch {
		case outcome == job.CancelPending && !spawned && !asked && r.Process == nil && ready != nil:
			seen["queued"]++
		case !spawned && r.Process == nil && r.ExitCode == nil && ready != nil:
			seen["taken"]++
		case outcome == job.Signaled && asked && spawned && r.Process != nil && r.ExitCode != nil && *r.ExitCode == 143,
			outcome == job.AlreadyDead && spawned && r.Process != nil && r.ExitCode != nil && *r.ExitCode == 143:
			seen["running"]++
		default:
			t.Fatalf("seed %d (%v): %s, its worker was asked: %t, its command was spawned: %t (%v), exit code %v, ready: %v",
				seed, s.order, outcome, asked, spawned, r.Process, r.ExitCode, ready)
		}
		if left := living(t, r); len(left) > 0 && !onlySelf(left, worker) {
			t.Fatalf("seed %d (%v): %s lives", seed, s.order, process.Words(left))
		}
	}
	if seen["queued"] == 0 || seen["taken"] == 0 || seen["running"] == 0 {
		t.Errorf("the orders did not show all: %v", seen)
	}
	t.Log(seen)
}

// onlySelf reports whether a process is the only one of some.
func onlySelf(all []process.Identity, self process.Identity) bool {
	return len(all) == 1 && all[0].PID == self.PID
}
