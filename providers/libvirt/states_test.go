package libvirt_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/providers/providertest"
)

// inState returns a lab whose vm.dev somebody brought into a state.
func inState(t *testing.T, edit func(*libvirt.FakeDomain)) *lab {
	t.Helper()
	l := made(t, vm(nil))
	l.Put(devID, edit)
	return l
}

func TestOddStates(t *testing.T) {
	asleep := func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeAsleep }
	ending := func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeEnding }
	saved := func(d *libvirt.FakeDomain) { d.Power, d.Running, d.Saved = libvirt.FakeOff, "", true }
	undefined := func(d *libvirt.FakeDomain) { d.Transient = true }
	for _, tc := range []struct {
		name   string
		state  func(*libvirt.FakeDomain)
		action providers.Action
		edits  []string
		says   string
		calls  string
	}{
		{
			name: "asleep, and started", state: asleep, action: providers.Start,
			says: "start: done, running\n  = it was pmsuspended (by its guest): woken\n", calls: "wake lab.dev\n",
		},
		{
			name: "asleep, and stopped", state: asleep, action: providers.Stop,
			says: "stop: graceful, off\n  = requested after 0s\n  = gone after 0s: shut off (shutdown)\n", calls: "wake lab.dev\nshutdown lab.dev\n",
		},
		{
			name: "asleep, and started with an edit", state: asleep, action: providers.Start, edits: []string{"memory"},
			says:  "stop: graceful, off\n  = requested after 0s\n  = gone after 0s: shut off (shutdown)\nredefine: done, off\nstart: done, running\n",
			calls: "wake lab.dev\nshutdown lab.dev\ndefine lab.dev\nstart lab.dev on qemu\n",
		},
		{
			name: "on its way down, and started", state: ending, action: providers.Start,
			says:  "stop: graceful, off\n  = requested after 0s\n  = gone after 0s: shut off (shutdown)\nstart: done, running\n",
			calls: "shutdown lab.dev\nstart lab.dev on qemu\n",
		},
		{
			name: "with saved memory, and started", state: saved, action: providers.Start,
			says: "start: done, running\n", calls: "start lab.dev on qemu\n",
		},
		{
			name: "with saved memory, and deleted", state: saved, action: providers.Destroy,
			says:  "delete: done, gone\n  = removed volumes\n  = removed the empty pool vmctl-lab-k7m2qd9x4r\n",
			calls: "undefine lab.dev\n",
		},
		{
			name: "with saved memory, and edited", state: saved, action: providers.Update, edits: []string{"memory"},
			says: `refused: its managed-save image does not match the new settings
  next: go on from it, then apply: virsh -c qemu:///session start lab.dev
  next: or throw it away: virsh -c qemu:///session managedsave-remove lab.dev
`,
		},
		{
			name: "undefined while it runs, and made whole", state: undefined, action: providers.Update,
			says: "redefine: done, running\n", calls: "define lab.dev\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := inState(t, tc.state)
			wantText(t, "what was said", tc.says, l.briefly(l.change(tc.action, vm(nil), tc.edits...)))
			calls := slices.DeleteFunc(l.Calls, func(call string) bool { // its files go as ever
				return tc.action == providers.Destroy && !strings.HasPrefix(call, "undefine ")
			})
			wantText(t, "calls", tc.calls, lines(calls))
		})
	}
}

func lines(all []string) string {
	var b strings.Builder
	for _, line := range all {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// briefly carries a change out, and returns its log without progress and the names of files.
func (l *lab) briefly(c providers.Change) string {
	l.t.Helper()
	if _, err := l.provider.Steps(c); err != nil {
		return refusal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(l.apply(c)) {
		if rest, ok := strings.CutPrefix(line, "  = removed volumes: "); ok && rest != "" {
			line = "  = removed volumes\n"
		}
		if !strings.HasPrefix(line, "  . ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func refusal(err error) string {
	var no *providers.Problem
	if !errors.As(err, &no) {
		return fmt.Sprintf("no refusal: %v\n", err)
	}
	s := "refused: " + no.Error() + "\n"
	for _, next := range providertest.Lines(no.Next) {
		s += "  next: " + next + "\n"
	}
	return s
}

// vmctl waits for a domain on its way down: the domain is gone at the next look, whether or
// not it hears another request.
func TestStopOfWhatEndsByItself(t *testing.T) {
	l := inState(t, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeEnding })
	l.Deaf = true
	l.Sleeping = func() { l.Put(devID, func(d *libvirt.FakeDomain) { d.Power, d.Running = libvirt.FakePower(5, 1), "" }) }
	wantText(t, "what was said", "stop: graceful, off\n  = requested after 0s\n  = gone after 300ms: shut off (shutdown)\n",
		l.briefly(l.change(providers.Stop, vm(off))))
}

// A domain that began to shut down after the plan is as the plan wanted it.
func TestStopOfWhatShutsDownMeanwhile(t *testing.T) {
	l := made(t, vm(nil))
	c := l.change(providers.Stop, vm(off))
	l.Put(devID, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeEnding })
	if got := l.briefly(c); !strings.HasPrefix(got, "stop: graceful, off\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestMemoryThatIsSavedAfterThePlan(t *testing.T) {
	l := made(t, vm(off))
	c := l.change(providers.Update, vm(off), "memory")
	l.Put(devID, func(d *libvirt.FakeDomain) { d.Saved = true })
	wantText(t, "what was said", `
redefine: refused saved_memory: change vm.dev: its managed-save image does not match the new settings
  next: go on from it, then apply: virsh -c qemu:///session start lab.dev
  next: or throw it away: virsh -c qemu:///session managedsave-remove lab.dev
`, l.apply(c))
	if len(l.Calls) > 0 {
		t.Errorf("calls %v", l.Calls)
	}
}

func TestBrokenWithoutForceIsRefused(t *testing.T) {
	l := inState(t, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeBroken })
	for _, action := range []providers.Action{
		providers.Start, providers.Recover, providers.Stop, providers.RestartIt, providers.ReplaceIt, providers.Destroy,
	} {
		c := l.change(action, vm(nil))
		c.Policy = instantly(cty.False)
		_, err := l.provider.Steps(c)
		wantText(t, string(action), `
refused: what runs of it can hear no request, and stop { force = false } forbids to force it
  next: end it by hand: virsh -c qemu:///session destroy lab.dev
  next: or let vmctl force it: stop { force = true } in vm.dev
`, refusal(err))
		c.Policy = instantly(cty.True)
		if _, err := l.provider.Steps(c); err != nil {
			t.Errorf("%s with force: %v", action, err)
		}
	}
}

// A crashed domain is off: nothing has to be forced.
func TestCrashedWithoutForceIsStarted(t *testing.T) {
	l := inState(t, func(d *libvirt.FakeDomain) { d.Power, d.Running = libvirt.FakeCrashed, "" })
	c := l.change(providers.Start, vm(nil))
	c.Policy = instantly(cty.False)
	if got := l.briefly(c); got != "start: done, running\n" {
		t.Errorf("got\n%s", got)
	}
}

// A replacement whose new name somebody took after the plan leaves all as it is.
func TestReplacementOntoATakenName(t *testing.T) {
	l := made(t, vm(nil))
	c := l.change(providers.ReplaceIt, vm(nil))
	c.ID, c.Name = "33333333-2222-8333-8444-555555555555", "lab.new"
	l.Put(otherID, func(d *libvirt.FakeDomain) { d.Name, d.Configured = "lab.new", "<domain type='qemu'/>" })
	wantText(t, "what was said", `
stop: refused name_taken: stop vm.dev: a domain of the name lab.new exists already (99999999-2222-8333-8444-555555555555), and it is not vmctl's
  next: look at it: virsh -c qemu:///session dumpxml lab.new
  next: set another name in the block of vm.dev
`, l.apply(c))
	if len(l.Calls) > 0 {
		t.Errorf("calls %v", l.Calls)
	}
}

// vmctl looks once more at a guest that is on its way down during the watch: the reason of
// its end says more than the fact.
func TestStartOfWhatShutsDownAtOnce(t *testing.T) {
	l := made(t, vm(off))
	looks := 0
	l.Sleeping = func() {
		looks++
		l.Put(devID, func(d *libvirt.FakeDomain) {
			d.Power = libvirt.FakeEnding
			if looks > 1 {
				d.Power, d.Running = libvirt.FakePower(5, 1), ""
			}
		})
	}
	got := l.apply(l.change(providers.Start, vm(nil)))
	if !strings.HasPrefix(got, "start: failed guest_stopped: start vm.dev: the guest is shut off (shutdown)\n") {
		t.Errorf("got\n%s", got)
	}
}
