package libvirt_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"vmctl/providers"
	"vmctl/providers/libvirt"
)

// passing brings vm.dev into a state that lasts for some of the pauses of the provider, and then
// into another one.
func (l *lab) passing(during, then func(*libvirt.FakeDomain), pauses int) {
	if pauses == 0 {
		l.Put(devID, then)
		return
	}
	l.Put(devID, during)
	l.Sleeping = func() {
		if pauses--; pauses == 0 {
			l.Put(devID, then)
		}
	}
}

func isStarting(d *libvirt.FakeDomain) { d.Power, d.Running = libvirt.FakeStarting, d.Configured }

// A domain in the middle of its start is observed as it is after it, whatever that is, unless the
// start takes too long.
func TestObserveWaitsForAStart(t *testing.T) {
	l := made(t, vm(nil))
	running := func(d *libvirt.FakeDomain) { d.Power, d.Running = libvirt.FakeRunning, d.Configured }
	stopped := func(reason int) func(*libvirt.FakeDomain) {
		return func(d *libvirt.FakeDomain) { d.Power, d.Running = libvirt.FakePower(5, reason), "" }
	}
	ends := []func(*libvirt.FakeDomain){
		running, stopped(1), stopped(3), stopped(6), func(d *libvirt.FakeDomain) { d.Power = libvirt.FakePaused },
		func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeBroken }, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeSaving },
	}
	longest := int(libvirt.PowerSettles / libvirt.PowerEvery)
	rapid.Check(t, func(rt *rapid.T) {
		end := rapid.SampledFrom(ends).Draw(rt, "end")
		pauses := rapid.IntRange(0, longest+2).Draw(rt, "pauses")
		during := rapid.SampledFrom([]func(*libvirt.FakeDomain){isStarting, func(d *libvirt.FakeDomain) {
			d.Power, d.Running = libvirt.FakePower(3, 8), d.Configured
		}}).Draw(rt, "during")
		l.Sleeping = nil
		l.Put(devID, running)
		l.Put(devID, end)
		want := show(l.observe(vm(nil)))
		if pauses > longest {
			l.Put(devID, during)
			l.Sleeping = nil
			want = show(l.observe(vm(nil)))
			if !strings.Contains(want, "unreadable running: libvirt is busy with it: paused (s") {
				rt.Fatalf("it never settles:\n%s", want)
			}
		}
		l.Put(devID, running)
		l.passing(during, end, pauses)
		if diff := cmp.Diff(want, show(l.observe(vm(nil)))); diff != "" {
			rt.Fatalf("after %d pauses (-want +got):\n%s", pauses, diff)
		}
	})
}

// Observe waits for no start of a domain that is not this project's, and for no long operation.
func TestObserveWaitsForNothingElse(t *testing.T) {
	l := made(t, vm(map[string]cty.Value{"port_forward": forwards("18080")})) // a claim: the other one is observed, too
	l.Copy(devID, otherID, "theirs")
	l.Put(otherID, func(d *libvirt.FakeDomain) {
		isStarting(d)
		d.Configured = strings.ReplaceAll(d.Configured, lineage, "anotherone")
		d.Running = d.Configured
	})
	l.Put(devID, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeSaving })
	l.Sleeping = func() { t.Error("it waited") }
	if got := show(l.observe(vm(nil))); !strings.Contains(got, "paused (saving)") || !strings.Contains(got, "paused (starting up)") {
		t.Errorf("got\n%s", got)
	}
}

// The wait for a start ends with the context.
func TestObserveOfAStartEnds(t *testing.T) {
	l := made(t, vm(nil))
	ctx, cancel := context.WithCancelCause(t.Context())
	l.Put(devID, isStarting)
	l.Sleeping = func() { cancel(errors.New("told to stop")) }
	if _, err := l.provider.Observe(ctx, providers.Query{Known: []providers.Known{{Address: dev, Kind: dev.Kind, ID: devID}}}); err == nil || err.Error() != "told to stop" {
		t.Errorf("it ended with %v", err)
	}
}

// A step waits, too: somebody began to start the domain after the plan.
func TestStepWaitsForAStart(t *testing.T) {
	l := made(t, vm(off))
	c := l.change(providers.Start, vm(nil))
	l.passing(isStarting, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeRunning }, 3)
	wantText(t, "what was said", "start: already, running\n  = it is running (booted)\n", l.briefly(c))
	if len(l.Calls) > 0 {
		t.Errorf("calls %v", l.Calls)
	}
}
