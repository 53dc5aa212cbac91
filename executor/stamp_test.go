package executor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/condition"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

// now returns the generation and the conditions of an address as a reader sees them, who takes no lock.
func (b *bench) now(address string) string {
	b.t.Helper()
	r := b.records()[address]
	text := fmt.Sprintf("generation %d", r.Generation)
	for _, c := range r.Conditions {
		text += fmt.Sprintf("; %s %s %s @%d by %s", c.Type, c.Status, c.Reason, c.Generation, c.Producer)
		if c.Terminal {
			text += " for good"
		}
	}
	return text
}

func (b *bench) sees(what, address, want string) {
	b.t.Helper()
	if got := b.now(address); got != want {
		b.t.Errorf("%s: %s; want %s", what, got, want)
	}
}

// during applies a spec, and calls look while a step runs that is held until then.
func (b *bench) during(step string, look func()) {
	b.t.Helper()
	held := make(chan struct{})
	b.memory.hold[step] = held
	b.run.Watch = func(e executor.Event) {
		if e.Kind == executor.StepProgress && e.Step.Op+" "+e.Step.Address.String() == step {
			go func() {
				look()
				close(held)
			}()
		}
	}
	b.must()
	delete(b.memory.hold, step)
	b.run.Watch = nil
}

// rows X06, X20, L47, E03, E05: the condition of a VM through its life, as a reader sees it while a long step runs. A condition of an
// earlier generation satisfies no wait for the one that is being applied.
//
// row E25, of a VM whose edit restarts it
func TestReadersSeeConditionsOfARunningApply(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	b.during("start vm.a", func() {
		b.sees("made", "vm.a", "generation 1; ssh.ready false Pending @1 by libvirt")
	})
	b.sees("applied", "vm.a", "generation 1; ssh.ready true Ready @1 by libvirt")

	b.spec("vm \"a\" {\n  cpus = 1\n}\n")
	b.during("redefine vm.a", func() {
		b.sees("restarting", "vm.a", "generation 1; ssh.ready false Stopped @1 by libvirt")
	})
	b.sees("restarted", "vm.a", "generation 2; ssh.ready true Ready @2 by libvirt")

	b.spec("vm \"a\" {\n  cpus = 2\n}\n")
	b.during("wait_ssh vm.a", func() {
		b.sees("waited for", "vm.a", "generation 3; ssh.ready false Starting @3 by libvirt")
	})
	b.sees("restarted again", "vm.a", "generation 3; ssh.ready true Ready @3 by libvirt")
}

// row X20: an identical apply keeps the generation, also after somebody stopped the VM; any effective change adds one.
func TestGenerationCountsEffectiveChanges(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	b.must()
	want := uint64(1)
	for _, test := range []struct {
		name, spec string
		before     func()
		effective  bool
		steps      string
	}{
		{name: "the same again"},
		{name: "an attribute", spec: "cpus = 1", effective: true, steps: "stop redefine start wait_ssh"},
		{name: "the same attribute again", spec: "cpus = 1"},
		{name: "another policy", spec: "cpus = 1\n  stop {\n    grace = \"7s\"\n  }", effective: true, steps: "record"},
		{name: "off", spec: "cpus = 1\n  running = false", effective: true, steps: "stop record"},
		{name: "off again", spec: "cpus = 1\n  running = false"},
		{name: "on", spec: "cpus = 1", effective: true, steps: "start wait_ssh"},
		{name: "the same after it was stopped", spec: "cpus = 1", steps: "start wait_ssh", before: func() {
			for _, o := range b.memory.objects {
				o.running = false
			}
		}},
	} {
		b.spec("vm \"a\" {\n  " + test.spec + "\n}\n")
		if test.before != nil {
			test.before()
		}
		summary, err := b.apply(t.Context())
		if err != nil || !summary.OK() {
			t.Fatal(test.name, summary, err)
		}
		if test.effective {
			want++
		}
		if got := b.records()["vm.a"].Generation; got != want {
			t.Errorf("%s: generation %d; want %d", test.name, got, want)
		}
		if got := strings.ReplaceAll(strings.Join(results(summary.Done), " "), " vm.a", ""); got != test.steps {
			t.Errorf("%s: steps %q; want %q", test.name, got, test.steps)
		}
		if r := b.records()["vm.a"]; !r.Conditions.Satisfied(condition.SSHReady, r.Generation) || len(b.pending()) > 0 {
			t.Errorf("%s: %s, pending %v", test.name, b.now("vm.a"), b.pending())
		}
	}
}

// row E04, of a VM: a change that does not concern readiness reaches the new generation without a wait, and without another
// transition.
func TestUnconcernedChangeStamps(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	b.must()
	before := b.records()["vm.a"].Conditions[0]
	b.memory.done = nil
	b.run.Now = func() time.Time { return time.Now().Add(time.Minute) } // a record has whole seconds
	b.spec("vm \"a\" {\n  stop {\n    grace = \"7s\"\n  }\n}\n")
	b.must()
	after := b.records()["vm.a"].Conditions[0]
	if before.Generation++; len(b.memory.done) > 0 || after.Generation != before.Generation || !after.Since.Equal(before.Since) {
		t.Errorf("done %v: %+v; want %+v", b.memory.done, after, before)
	}
}

// row E07, of a VM: it counts as stopped only once that is confirmed.
func TestStopWaitsForProof(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	b.must()
	b.spec("vm \"a\" {\n  running = false\n}\n")
	b.memory.fail["stop vm.a"] = &providers.Problem{Outcome: providers.Failed, Code: "alive", Err: errors.New("could not confirm that it stopped")}
	if summary, err := b.apply(t.Context()); err != nil || summary.OK() {
		t.Fatal(summary, err)
	}
	b.sees("a stop that was not confirmed", "vm.a", "generation 1; ssh.ready unknown StopFailed @1 by libvirt")
	delete(b.memory.fail, "stop vm.a")
	b.during("stop vm.a", func() {
		b.sees("while it is stopped", "vm.a", "generation 1; ssh.ready unknown StopFailed @1 by libvirt")
	})
	b.sees("stopped", "vm.a", "generation 2; ssh.ready not_applicable Stopped @2 by libvirt")
}

// row X06: how a wait failed is the reason of the condition; a later apply waits again, also for one that failed for good.
func TestFailuresAreReasons(t *testing.T) {
	for _, test := range []struct {
		step    string
		problem providers.Problem
		want    string
	}{
		{"define", providers.Problem{Outcome: providers.Failed, Code: "no_space"}, "generation 0; ssh.ready false CreateFailed @0 by libvirt for good"},
		{"start", providers.Problem{Outcome: providers.Failed, Code: "no_kvm"}, "generation 1; ssh.ready false StartFailed @1 by libvirt for good"},
		{"wait_ssh", providers.Problem{Outcome: providers.Timeout, Code: "no_ssh"}, "generation 1; ssh.ready false no_ssh @1 by libvirt"},
		{"wait_ssh", providers.Problem{Outcome: providers.Unsafe, Code: "host_key_changed"}, "generation 1; ssh.ready false host_key_changed @1 by libvirt for good"},
		{"wait_ssh", providers.Problem{Outcome: providers.Failed}, "generation 1; ssh.ready false failed @1 by libvirt for good"},
	} {
		b := newBench(t, "vm \"a\" {}\n")
		test.problem.Err = errors.New("planted\nin two lines " + strings.Repeat("é", 200))
		b.memory.fail[test.step+" vm.a"] = &test.problem
		if summary, err := b.apply(t.Context()); err != nil || summary.OK() {
			t.Fatal(summary, err)
		}
		b.sees(test.step, "vm.a", test.want)
		if got := b.records()["vm.a"].Conditions[0].Message; got != "planted" {
			t.Errorf("%s: message %q", test.step, got)
		}
		b.memory.fail = nil
		b.must()
		if got := b.now("vm.a"); !strings.HasSuffix(got, "ssh.ready true Ready @1 by libvirt") || len(b.pending()) > 0 {
			t.Errorf("%s, applied again: %s, pending %v", test.step, got, b.pending())
		}
	}
}

// row E08: an interrupt during a wait leaves the condition unknown: the next apply waits.
func TestInterruptedWaitIsUnknown(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	b.memory.hold["wait_ssh vm.a"] = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	b.run.Watch = func(e executor.Event) {
		if e.Kind == executor.StepProgress && e.Step.Op == "wait_ssh" {
			cancel()
		}
	}
	if summary, err := b.apply(ctx); err != nil || !summary.Interrupted {
		t.Fatal(summary, err)
	}
	b.sees("interrupted", "vm.a", "generation 1; ssh.ready unknown interrupted @1 by libvirt")
	if got := b.pending(); len(got) == 0 {
		t.Error("nothing is pending")
	}
}

// rows E09, L47: a report of a running step is written down at once, and is told once. A report that ends the wait ends the step
// at once, though its provider would wait on.
func TestReportsOfARunningStep(t *testing.T) {
	failed := condition.Report{Type: condition.SSHReady, Status: condition.False, Reason: "Panicked", Message: "the guest's kernel panicked", Terminal: true}
	booting := condition.Report{Type: condition.SSHReady, Status: condition.False, Reason: "Booting", Message: "it boots"}
	none := condition.Report{Type: condition.SSHReady, Status: condition.NotApplicable, Reason: "NoServer", Message: "it has no SSH server"}
	other := condition.Report{Type: "ssh.fast", Status: condition.True}
	for _, test := range []struct {
		name    string
		reports []condition.Report
		ok      bool
		told    []string
		want    string
	}{
		{
			name: "failed for good", reports: []condition.Report{booting, booting, other, failed},
			told: []string{"false Pending", "false Starting", "false Booting", "false Panicked", "step_failed Panicked: the guest's kernel panicked"},
			want: "generation 1; ssh.ready false Panicked @1 by libvirt for good",
		},
		{
			name: "not applicable", reports: []condition.Report{none}, ok: true,
			told: []string{"false Pending", "false Starting", "not_applicable NoServer"},
			want: "generation 1; ssh.ready not_applicable NoServer @1 by libvirt",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, "vm \"a\" {}\n")
			b.memory.hold["wait_ssh vm.a"] = make(chan struct{}) // for ever
			b.memory.reports = map[string][]condition.Report{"wait_ssh vm.a": test.reports}
			var told []string
			b.run.Watch = func(e executor.Event) {
				for _, c := range e.Conditions {
					told = append(told, fmt.Sprintf("%s %s", c.Status, c.Reason))
				}
				if e.Failure != nil {
					told = append(told, fmt.Sprintf("%s %s: %s", e.Kind, e.Failure.Code, e.Failure.Error()))
				}
				if e.Kind == executor.ConditionChanged { // a reader sees what is told
					if got, want := b.now("vm.a"), fmt.Sprintf("%s %s @1", e.Conditions[0].Status, e.Conditions[0].Reason); !strings.Contains(got, want) {
						t.Errorf("told %s, and a reader sees %s", want, got)
					}
				}
			}
			summary, err := b.apply(t.Context())
			if err != nil || summary.OK() != test.ok {
				t.Fatal(summary, err)
			}
			if diff := cmp.Diff(test.told, told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			b.sees("at the end", "vm.a", test.want)
			if test.ok && len(b.pending()) > 0 {
				t.Errorf("pending: %v", b.pending())
			}
		})
	}
}

// boxed returns a bench with a VM and a box inside of it.
func boxed(t *testing.T) *bench {
	b := newBench(t, "vm \"a\" {}\nbox \"b\" {\n  in    = vm.a\n  label = \"b\"\n}\n")
	b.boxes = &boxes{there: map[providers.ID]*providers.Object{}}
	b.options = planner.Options{Types: providers.Types{
		Systems: map[string]providers.Type{"libvirt": memoryType()}, Inside: map[spec.Kind]providers.Type{box.Kind: boxType()},
	}, Project: project}
	return b
}

// rows E01, E02, X06: a kind with a condition that its type produces and one that nobody does. Nothing waits for the second,
// which is not applicable, whatever a step reports.
func TestSecondKind(t *testing.T) {
	b := boxed(t)
	b.boxes.seal = condition.Report{Type: box.Sealed, Status: condition.Unknown, Reason: "Wet"}
	summary, err := b.apply(t.Context())
	if err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	if got := fmt.Sprint(b.boxes.done); got != "[make open wait_sealed]" {
		t.Errorf("done %v: a step waited for what nobody produces", got)
	}
	b.sees("applied", "box.b", "generation 1; box.sealed true Ready @1 by boxes")
	declared := boxType().Conditions(box.Kind)
	var got []string
	for _, c := range b.snapshot().Records[spec.Address{Kind: box.Kind, Name: "b"}].Conditions.Complete(declared, 1) {
		got = append(got, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
	}
	if diff := cmp.Diff([]string{"box.sealed true Ready", "box.lit not_applicable NoProducer"}, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if len(b.pending()) > 0 {
		t.Errorf("pending: %v", b.pending())
	}

	b.spec("vm \"a\" {}\nbox \"b\" {\n  in      = vm.a\n  label   = \"b\"\n  content = \"full\"\n}\n")
	b.boxes.done = nil
	b.must()
	b.sees("written to", "box.b", "generation 2; box.sealed true Ready @2 by boxes")
	if got := fmt.Sprint(b.boxes.done); got != "[write]" {
		t.Errorf("done: %s", got)
	}
}

// row E03: a box that was sealed for an earlier generation is waited for again.
func TestStaleConditionIsWaitedFor(t *testing.T) {
	b := boxed(t)
	b.must()
	for _, o := range b.boxes.there {
		o.Owner.Generation = 1
	}
	s := b.snapshot()
	a := spec.Address{Kind: box.Kind, Name: "b"}
	r := s.Records[a]
	r.Generation = 2
	s.Records[a] = r
	p, w := b.plan(s)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"open box.b", "wait_sealed box.b", "wait_lit box.b"}, steps(p.Steps)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	for _, c := range p.Changes {
		if c.Address == a && c.Reason != "it runs, and was not seen ready since it was changed" {
			t.Errorf("reason: %s", c.Reason)
		}
	}
}
