package executor_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"vmctl/condition"
	"vmctl/executor"
	"vmctl/providers"
	"vmctl/providers/providertest/box"
)

// crash lets the VMs go off behind vmctl's back: what the record says of their readiness is from a session that is over.
func (b *bench) crash() {
	b.memory.mu.Lock()
	defer b.memory.mu.Unlock()
	for _, o := range b.memory.objects {
		o.running = false
	}
}

// A condition that was true before the VM crashed ends no wait for the VM that was started since. The generation is
// the same, so that it does not tell the two apart. The wait runs, also after an apply that was
// killed before it.
//
// row E48
func TestReadinessOfACrashedSessionIsIgnored(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	b.must()
	b.crash()
	b.sees("crashed", "vm.a", "generation 1; ssh.ready true Ready @1 by libvirt")
	b.during("wait_ssh vm.a", func() {
		b.sees("started again", "vm.a", "generation 1; ssh.ready false Starting @1 by libvirt")
	})
	b.sees("ready again", "vm.a", "generation 1; ssh.ready true Ready @1 by libvirt")

	for entries, killed := 0, true; killed; entries++ {
		b.crash()
		b.memory.done = nil
		store := b.folder
		b.folder = &dying{Store: store, entries: entries}
		_, err := b.apply(t.Context())
		if killed = errors.Is(err, errKilled); err != nil && !killed {
			t.Fatal(err)
		}
		b.folder = store
		b.finish()
		if last := b.memory.done[len(b.memory.done)-1]; last != "wait_ssh vm.a" {
			t.Errorf("killed after %d entries: it was done %v, and nobody waited for the VM that was started", entries, b.memory.done)
		}
	}
}

// Nothing waits for a condition that nobody produces, but whoever produces one and cannot read it keeps the wait going: until it
// can be read, or until the deadline.
//
// row E49
func TestAnUnreadableConditionIsWaitedFor(t *testing.T) {
	unread := condition.Report{Type: condition.SSHReady, Status: condition.Unknown, Reason: "Unread", Message: "the registry cannot be read"}
	t.Run("nobody produces it", func(t *testing.T) {
		b := boxed(t)
		b.must()
		if slices.Contains(b.boxes.done, "wait_lit") {
			t.Errorf("done %v: a step waited for what nobody produces", b.boxes.done)
		}
		c, outcome := b.records()["box.b"].Conditions.Await(condition.Declared{Type: box.Lit}, 1)
		if c.Status != condition.NotApplicable || outcome != condition.Met {
			t.Errorf("it is %s, and a wait for it %s", c.Status, outcome)
		}
	})
	t.Run("until it can be read", func(t *testing.T) {
		b := newBench(t, "vm \"a\" {}\n")
		b.memory.reports = map[string][]condition.Report{"wait_ssh vm.a": {unread}}
		held := make(chan struct{})
		b.memory.hold["wait_ssh vm.a"] = held
		b.run.Watch = func(e executor.Event) {
			if e.Kind == executor.ConditionChanged && e.Conditions[0].Status == condition.Unknown {
				b.sees("unread", "vm.a", "generation 1; ssh.ready unknown Unread @1 by libvirt")
				close(held) // the wait has not ended: nothing else lets it end well
			}
		}
		b.must()
		b.sees("read", "vm.a", "generation 1; ssh.ready true Ready @1 by libvirt")
	})
	t.Run("until the deadline", func(t *testing.T) {
		b := newBench(t, "vm \"a\" {}\n")
		b.memory.reports = map[string][]condition.Report{"wait_ssh vm.a": {unread}}
		b.memory.hold["wait_ssh vm.a"] = make(chan struct{}) // for ever
		b.memory.limits = map[string]time.Duration{"wait_ssh": 100 * time.Millisecond}
		var failed *providers.Problem
		b.run.Watch = func(e executor.Event) {
			if e.Failure != nil {
				failed = e.Failure
			}
		}
		if summary, err := b.apply(t.Context()); err != nil || summary.OK() {
			t.Fatal(summary, err)
		}
		if failed == nil || failed.Outcome != providers.Timeout {
			t.Errorf("the wait ended with %v, and not at the deadline", failed)
		}
		b.sees("at the deadline", "vm.a", "generation 1; ssh.ready false deadline @1 by libvirt")
	})
}
