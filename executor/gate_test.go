package executor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/busy"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// house is a gate on real locks that writes down what happens to VMs.
type house struct {
	folder busy.Folder
	mu     sync.Mutex
	log    []string
	broken error // what opening fails with
}

func (h *house) note(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, text)
}

func (h *house) Close(ctx context.Context, c *planner.Change, waiting func([]state.Holder)) (func() error, error) {
	open, err := h.folder.Close(ctx, busy.Closing{
		Address: c.Address, By: person(99), Interrupt: c.Busy.Interrupt, Wait: c.Busy.Wait, Waiting: waiting,
	})
	var occupied *busy.OccupiedError
	if errors.As(err, &occupied) {
		return nil, executor.BusyFailure(c, occupied.Holders)
	}
	if err != nil {
		return nil, err
	}
	h.note("close " + c.Address.String())
	return func() error {
		h.note("open " + c.Address.String())
		return errors.Join(open(), h.broken)
	}, nil
}

func person(pid int) state.Holder {
	return state.Holder{PID: pid, Host: "ada", Command: "vmctl vm shell", Since: time.Date(2026, 5, 1, 12, 0, pid, 0, time.UTC)}
}

// gated is a bench with a gate, on VMs that run.
func gated(t *testing.T, source string) (*bench, *house) {
	t.Helper()
	b := newBench(t, source)
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	h := &house{folder: busy.Folder{Dir: t.TempDir()}}
	b.run.Gate = h
	return b, h
}

// enter lets somebody work in vm.a.
func (h *house) enter(t *testing.T) (leave func()) {
	t.Helper()
	out, err := h.folder.Enter(t.Context(), spec.Address{Kind: spec.VM, Name: "a"}, person(1))
	if err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if err := out(); err != nil {
			t.Error(err)
		}
	})
}

// enters reports whether somebody new gets in.
func (h *house) enters(t *testing.T, name string) bool {
	t.Helper()
	leave, err := h.folder.Enter(context.WithoutCancel(t.Context()), spec.Address{Kind: spec.VM, Name: name}, person(7))
	var closed *busy.ClosedError
	if err != nil && !errors.As(err, &closed) {
		t.Error(err)
	}
	if err != nil {
		return false
	}
	if err := leave(); err != nil {
		t.Error(err)
	}
	return true
}

// A VM is closed before it is taken down, and stays so until it is ready again.
func TestVMIsClosedFromDownToTheEndOfItsChange(t *testing.T) {
	b, h := gated(t, "vm \"a\" {}\nvm \"b\" {}\n")
	b.spec("vm \"a\" {\n  memory = \"512MiB\"\n}\nvm \"b\" {}\n")
	b.run.Watch = func(e executor.Event) {
		if e.Kind == executor.StepStarted {
			h.note(fmt.Sprintf("%s %s: a %t, b %t", e.Step.Op, e.Step.Address, h.enters(t, "a"), h.enters(t, "b")))
		}
	}
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	want := []string{
		"close vm.a", "stop vm.a: a false, b true", "redefine vm.a: a false, b true", "start vm.a: a false, b true",
		"wait_ssh vm.a: a false, b true", "open vm.a",
	}
	if d := cmp.Diff(want, h.log); d != "" {
		t.Errorf("what happened (-want +got):\n%s", d)
	}
	if !h.enters(t, "a") {
		t.Error("nobody gets in after the restart")
	}
}

// A change that takes no VM down closes none.
func TestWhatTakesNothingDownClosesNothing(t *testing.T) {
	b, h := gated(t, "vm \"a\" {\n  running = false\n}\n")
	defer h.enter(t)()
	b.spec("vm \"a\" {\n  memory = \"512MiB\"\n}\n")
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	if len(h.log) != 0 {
		t.Errorf("what happened: %q, want nothing", h.log)
	}
}

// Somebody came after the plan was made: it is seen before the VM is touched, and
// nothing is written down as begun.
func TestBusySinceThePlan(t *testing.T) {
	b, h := gated(t, "vm \"a\" {}\n")
	b.spec("vm \"a\" {\n  running = false\n}\n")
	leave := h.enter(t)
	defer leave()
	before := slices.Clone(b.memory.done)
	summary, err := b.apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(summary.Failed) != 1 {
		t.Fatalf("summary %v, want one failure", summary)
	}
	want := &providers.Problem{
		Outcome: providers.Unsafe, Code: "busy",
		Seen: []string{"vmctl vm shell (pid 1 on ada) since 2026-05-01 12:00:01 UTC"},
		Next: providers.Say(
			"let them end, or end them where they run; then repeat the command", "or interrupt them: --allow-interrupt=vm.a",
			"or have them waited for: when_busy = \"wait 30m\" in the block of vm.a",
		),
	}
	got := *summary.Failed[0].Failure
	if text := "take vm.a down: somebody is at work in it, and it was left as it is"; got.Error() != text {
		t.Errorf("failure %q, want %q", got.Error(), text)
	}
	got.Err = nil
	if d := cmp.Diff(want, &got); d != "" {
		t.Errorf("failure (-want +got):\n%s", d)
	}
	if d := cmp.Diff(before, b.memory.done); d != "" {
		t.Errorf("what was done to VMs (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"step_failed stop vm.a", "halted"}, b.log); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if s, err := b.folder.Read(t.Context()); err != nil || len(s.Interrupted) != 0 {
		t.Errorf("interrupted %v, %v; want nothing", s.Interrupted, err)
	}
	leave()
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Errorf("after all have left: %v, %v", summary, err)
	}
}

// The holders in a VM are waited for as long as the block says, while other changes go on; the
// wait is shown with its deadline.
func TestThoseInsideAreWaitedFor(t *testing.T) {
	b, h := gated(t, "vm \"a\" {}\nvm \"b\" {}\n")
	b.spec("vm \"a\" {\n  running = false\n  when_busy = \"wait 1h\"\n}\nvm \"b\" {\n  running = false\n}\n")
	b.run.Parallelism = 1
	leave := h.enter(t)
	defer leave()
	var waits []string
	b.run.Watch = func(e executor.Event) {
		if e.Kind == executor.StepWaiting {
			waits = append(waits, fmt.Sprintf("%s %s %s: %s", e.Step.Op, e.Step.Address, e.Deadline, e.Text))
		}
		if e.Kind == executor.StepDone && e.Step.Address.Name == "b" && e.Step.Op == "stop" {
			leave() // the wait for a held up nothing else, not even with room for one step only
		}
	}
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	want := []string{"stop vm.a 1h0m0s: vmctl vm shell (pid 1 on ada) since 2026-05-01 12:00:01 UTC"}
	if d := cmp.Diff(want, waits); d != "" {
		t.Errorf("waits (-want +got):\n%s", d)
	}
	for _, o := range b.memory.objects {
		if o.running {
			t.Errorf("%s runs still", o.name)
		}
	}
}

func TestWaitForThoseInsideHasADeadline(t *testing.T) {
	b, h := gated(t, "vm \"a\" {}\n")
	b.spec("vm \"a\" {\n  running = false\n  when_busy = \"wait 1s\"\n}\n")
	defer h.enter(t)()
	summary, err := b.apply(t.Context())
	if err != nil || len(summary.Failed) != 1 {
		t.Fatal(summary, err)
	}
	f := summary.Failed[0].Failure
	want := "take vm.a down: somebody is at work in it still, after 1s, and it was left as it is"
	if f.Outcome != providers.Timeout || f.Error() != want {
		t.Errorf("failure %s %q, want a timeout: %q", f.Outcome, f.Error(), want)
	}
}

// An interrupt, or the failure of another, ends the wait: the step did not run.
func TestWaitForThoseInsideEndsWithTheRun(t *testing.T) {
	tests := []struct {
		name string
		end  func(*bench, context.CancelFunc)
		want []string
	}{
		{
			name: "interrupt",
			end: func(b *bench, cancel context.CancelFunc) {
				b.run.Watch = func(e executor.Event) {
					if e.Kind == executor.StepWaiting {
						cancel()
					}
				}
			},
		},
		{
			name: "the failure of another",
			end: func(b *bench, _ context.CancelFunc) {
				waits := make(chan struct{})
				b.memory.hold["stop vm.b"] = waits
				b.memory.fail["stop vm.b"] = &providers.Problem{Outcome: providers.Failed, Err: errors.New("planted")}
				b.run.Watch = func(e executor.Event) {
					if e.Kind == executor.StepWaiting {
						close(waits)
					}
				}
			},
			want: []string{"stop vm.b"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b, h := gated(t, "vm \"a\" {}\nvm \"b\" {}\n")
			off := "vm \"a\" {\n  running = false\n  when_busy = \"wait 1h\"\n}\n"
			if test.want != nil {
				off += "vm \"b\" {\n  running = false\n}\n"
			} else {
				off += "vm \"b\" {}\n"
			}
			b.spec(off)
			defer h.enter(t)()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			test.end(b, cancel)
			summary, err := b.apply(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, results(summary.Failed)); d != "" {
				t.Errorf("failed (-want +got):\n%s", d)
			}
			if !slices.ContainsFunc(summary.NotRun, func(s planner.Step) bool { return s.Op == "stop" && s.Address.Name == "a" }) {
				t.Errorf("not run: %v, want the stop of vm.a among it", steps(summary.NotRun))
			}
			if !h.enters(t, "a") {
				t.Error("nobody gets in after the wait was given up")
			}
		})
	}
}

func TestAllowedInterruptionWaitsForNobodyAndLetsNobodyIn(t *testing.T) {
	b, h := gated(t, "vm \"a\" {}\n")
	b.spec("vm \"a\" {\n  running = false\n}\n")
	b.options.Allow.Interrupt = map[spec.Address]bool{{Kind: spec.VM, Name: "a"}: true}
	defer h.enter(t)()
	b.run.Watch = func(e executor.Event) {
		if e.Kind == executor.StepStarted && e.Step.Op == "stop" && h.enters(t, "a") {
			t.Error("one more got in while the VM goes down")
		}
	}
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
}

// A change that failed lets others in again while the rest goes on.
func TestFailedChangeOpensItsVM(t *testing.T) {
	b, h := gated(t, "vm \"a\" {}\nvm \"b\" {}\n")
	b.spec("vm \"a\" {\n  running = false\n}\nvm \"b\" {\n  memory = \"512MiB\"\n}\n")
	b.run.KeepGoing = true
	b.memory.fail["stop vm.a"] = &providers.Problem{Outcome: providers.Failed, Err: errors.New("planted")}
	hold := make(chan struct{})
	b.memory.hold["stop vm.b"] = hold
	b.run.Watch = func(e executor.Event) {
		switch {
		case e.Kind == executor.StepFailed:
			close(hold)
		case e.Kind == executor.StepStarted && e.Step.Op == "start" && e.Step.Address.Name == "b":
			if !h.enters(t, "a") {
				t.Error("nobody gets into vm.a, whose change is over")
			}
		}
	}
	if summary, err := b.apply(t.Context()); err != nil || len(summary.Failed) != 1 {
		t.Fatal(summary, err)
	}
}

func TestAVMThatDoesNotOpenIsTold(t *testing.T) {
	b, h := gated(t, "vm \"a\" {}\n")
	b.spec("vm \"a\" {\n  running = false\n}\n")
	h.broken = errors.New("planted")
	summary, err := b.apply(t.Context())
	if want := "let others into vm.a again: planted"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	if !summary.OK() {
		t.Errorf("summary %v: the stop was done", summary)
	}
}

// Of many VMs that are destroyed a few are closed at a time, each for as long as it takes:
// somebody who works in the last one is not kept out while the first one goes.
func TestOfManyVMsFewAreClosedAtATime(t *testing.T) {
	b, h := gated(t, "vm \"a\" {\n  for_each = toset([for i in range(40) : tostring(i)])\n}\n")
	b.spec("# empty\n")
	b.run.Parallelism = 3
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	closed, most := 0, 0
	for _, line := range h.log {
		if strings.HasPrefix(line, "close ") {
			closed++
		} else {
			closed--
		}
		most = max(most, closed)
	}
	if closed != 0 || len(h.log) != 80 {
		t.Errorf("%d are closed in the end, after %d notes", closed, len(h.log))
	}
	if most > 2*b.run.Parallelism {
		t.Errorf("%d VMs were closed at a time, with %d steps side by side", most, b.run.Parallelism)
	}
}
