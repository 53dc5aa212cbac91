package executor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

var project = providers.Project{Name: "demo", ID: "k7m2qd9x4r"}

// bench is a project on a provider in memory, with a real state on disk.
type bench struct {
	t       *testing.T
	memory  *memory
	boxes   *boxes
	folder  state.Store
	config  *spec.Config
	options planner.Options
	log     []string // events, as text
	run     executor.Run
}

// stateIn returns the state of the project in a folder.
func stateIn(dir string) state.Store {
	return state.NewStore(state.Folder{Dir: dir, Now: time.Now}, state.Config{
		ID: project.ID, Project: project.Name, Version: "test", Now: time.Now,
	})
}

func newBench(t *testing.T, source string) *bench {
	t.Helper()
	b := &bench{
		t: t, memory: newMemory(project),
		folder:  stateIn(t.TempDir()),
		options: planner.Options{Types: providers.Types{Systems: map[string]providers.Type{"libvirt": memoryType()}}, Project: project},
	}
	b.spec(source)
	return b
}

func (b *bench) spec(source string) {
	b.t.Helper()
	dir := b.t.TempDir()
	head := "vmctl {\n  project = \"demo\"\n  id = \"k7m2qd9x4r\"\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.vmctl.hcl"), []byte(head+source), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kernel"), []byte("a kernel"), 0o600); err != nil {
		b.t.Fatal(err)
	}
	c, diags := spec.Load(dir, spec.Inputs{
		Supports: func(string, spec.Kind, string) bool { return true }, ProviderTypes: []string{"libvirt"}, Version: "0.1.0",
	})
	if diags.HasErrors() {
		b.t.Fatal(diags)
	}
	b.config = c
}

func (b *bench) apply(ctx context.Context) (executor.Summary, error) {
	b.t.Helper()
	journal, err := b.folder.Open(ctx, state.Owner{Command: "test"})
	if err != nil {
		b.t.Fatal(err)
	}
	plan, world := b.plan(journal.Snapshot())
	run := b.run
	run.Plan, run.World, run.Journal, run.ID, run.Now = plan, world, journal, "run", time.Now
	resolve := func(a spec.Address, values map[spec.Address]cty.Value) (spec.Resource, error) {
		r, diags := b.config.Resolve(a, values)
		if diags.HasErrors() {
			return r, diags
		}
		return r, nil
	}
	if run.Resolve == nil {
		run.Resolve = resolve
	}
	b.log = nil
	watch := run.Watch
	run.Watch = func(e executor.Event) {
		if e.Kind != executor.StepProgress {
			b.log = append(b.log, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Kind, e.Step.Op, e.Step.Address)))
		}
		if watch != nil {
			watch(e)
		}
	}
	summary, err := executor.Apply(ctx, run)
	if cerr := errors.Join(journal.Close(), world.Close()); cerr != nil && err == nil {
		b.t.Fatal(cerr)
	}
	return summary, err
}

func (b *bench) plan(s *state.Snapshot) (*planner.Plan, *planner.World) {
	b.t.Helper()
	open := func(_ context.Context, o planner.Opening) (providers.Provider, error) {
		if o.Via != nil {
			return b.boxes, nil
		}
		return b.memory, nil
	}
	p, w, err := planner.Make(b.t.Context(), open, b.config, s, b.options)
	if err != nil {
		b.t.Fatal(err)
	}
	return p, w
}

// pending lists the steps that a new plan has.
func (b *bench) pending() []string {
	b.t.Helper()
	s, err := b.folder.Read(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	p, w := b.plan(s)
	if err := w.Close(); err != nil {
		b.t.Fatal(err)
	}
	return steps(p.Steps)
}

// must applies, and demands that it goes well.
func (b *bench) must() {
	b.t.Helper()
	if summary, err := b.apply(b.t.Context()); err != nil || !summary.OK() {
		b.t.Fatal(summary, err)
	}
}

func (b *bench) snapshot() *state.Snapshot {
	b.t.Helper()
	s, err := b.folder.Read(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bench) records() map[string]state.Record {
	b.t.Helper()
	all := map[string]state.Record{}
	for a, r := range b.snapshot().Records {
		all[a.String()] = r
	}
	return all
}

func steps(all []planner.Step) []string {
	var names []string
	for _, s := range all {
		names = append(names, s.Op+" "+s.Address.String())
	}
	return names
}

func results(all []executor.StepResult) []string {
	var names []string
	for _, r := range all {
		names = append(names, r.Step.Op+" "+r.Step.Address.String())
	}
	return names
}

const two = "vm \"a\" {}\nvm \"b\" {\n  depends_on = [vm.a]\n}\n"

func TestApplyThenNothing(t *testing.T) {
	b := newBench(t, two)
	summary, err := b.apply(t.Context())
	if err != nil || !summary.OK() {
		t.Fatalf("apply: %+v, %v", summary, err)
	}
	want := []string{"define vm.a", "start vm.a", "wait_ssh vm.a", "define vm.b", "start vm.b", "wait_ssh vm.b"}
	if diff := cmp.Diff(want, results(summary.Done)); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if got := b.pending(); len(got) > 0 {
		t.Errorf("a second plan has steps: %v", got)
	}
	r := b.records()["vm.a"]
	if !r.Values.GetAttr("running").True() || r.Starts != 1 || r.Generation != 1 || r.Values.GetAttr("ssh_port").IsNull() {
		t.Errorf("record: running %#v, starts %d, generation %d, values %#v", r.Values.GetAttr("running"), r.Starts, r.Generation, r.Values)
	}
}

// row X09: for a failure at every step: what came before is recorded, what comes
// after is not begun and listed, and the next plan is the rest.
func TestStopAtFirstFailure(t *testing.T) {
	all := []string{"define vm.a", "start vm.a", "wait_ssh vm.a", "define vm.b", "start vm.b", "wait_ssh vm.b"}
	for k, op := range all {
		t.Run(op, func(t *testing.T) {
			b := newBench(t, two)
			b.memory.fail[op] = &providers.Problem{Outcome: providers.Failed, Code: "planted", Err: errors.New("planted")}
			summary, err := b.apply(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(all[:k], results(summary.Done), equateEmpty()); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{op}, results(summary.Failed)); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(all[k+1:], steps(summary.NotRun), equateEmpty()); diff != "" {
				t.Errorf("not run (-want +got):\n%s", diff)
			}
			rest := all[k:]
			if strings.HasPrefix(op, "wait_ssh") {
				rest = append([]string{"start " + strings.Fields(op)[1]}, rest...) // which finds it started
			}
			if diff := cmp.Diff(rest, b.pending(), equateEmpty()); diff != "" {
				t.Errorf("next plan (-want +got):\n%s", diff)
			}
			b.memory.fail = map[string]*providers.Problem{}
			if summary, err := b.apply(t.Context()); err != nil || !summary.OK() || len(b.pending()) > 0 {
				t.Errorf("apply again: %+v, %v, then pending %v", summary, err, b.pending())
			}
		})
	}
}

func equateEmpty() cmp.Option {
	return cmp.Transformer("sorted", func(s []string) []string { return append([]string{}, s...) })
}

func TestDiagnosticFailureWarns(t *testing.T) {
	b := newBench(t, two)
	b.memory.class["wait_ssh"] = providers.Diagnostic
	b.memory.fail["wait_ssh vm.a"] = &providers.Problem{Outcome: providers.Failed, Err: errors.New("planted")}
	summary, err := b.apply(t.Context())
	if err != nil || !summary.OK() {
		t.Fatalf("apply: %+v, %v; a diagnostic failure only warns", summary, err)
	}
	if diff := cmp.Diff([]string{"wait_ssh vm.a"}, results(summary.Warned)); diff != "" {
		t.Errorf("warned (-want +got):\n%s", diff)
	}
}

// A VM that was taken down is brought up, although another change failed.
func TestFailureLeavesNothingDown(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\nvm \"b\" {}\n")
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	b.spec("vm \"a\" {\n  cpus = 1\n}\nvm \"b\" {\n  cpus = 1\n}\nvm \"c\" {}\n")
	release := make(chan struct{})
	b.memory.hold["redefine vm.b"] = release
	b.memory.fail["stop vm.a"] = &providers.Problem{Outcome: providers.Failed, Err: errors.New("planted")}
	b.run.Watch = func(e executor.Event) {
		if e.Kind == executor.Halted {
			close(release)
		}
	}
	hold := make(chan struct{})
	b.memory.hold["stop vm.a"] = hold
	b.memory.entered = make(chan string)
	go func() {
		for op := range b.memory.entered {
			if op == "redefine vm.b" { // b is down: now a may fail
				close(hold)
			}
		}
	}()
	summary, err := b.apply(t.Context())
	close(b.memory.entered)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"stop vm.a"}, results(summary.Failed)); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
	if r := b.records()["vm.b"]; !r.Values.GetAttr("running").True() {
		t.Error("vm.b was taken down and not brought up again")
	}
	if len(summary.Down) > 0 {
		t.Errorf("down: %v; want none", summary.Down)
	}
}

func TestFailureNamesWhatIsDown(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	b.spec("vm \"a\" {\n  cpus = 1\n}\n")
	b.memory.fail["redefine vm.a"] = &providers.Problem{Outcome: providers.Failed, Err: errors.New("planted")}
	summary, err := b.apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(summary.Down) != 1 || summary.Down[0].String() != "vm.a" {
		t.Errorf("down: %v; want vm.a", summary.Down)
	}
	if r := b.records()["vm.a"]; r.Generation != 2 || r.Values.GetAttr("cpus").Equals(cty.NumberIntVal(2)).False() {
		t.Errorf("the record says what was not applied, or not that it was tried: generation %d, cpus %#v", r.Generation, r.Values.GetAttr("cpus"))
	}
}

// A deletion that failed may have removed a part of its object: it stays begun, as that of a run that was
// killed. One that was refused removed nothing.
func TestFailedDeletionStaysBegun(t *testing.T) {
	for _, test := range []struct {
		outcome providers.Outcome
		begun   string
	}{
		{providers.Failed, state.Replacing},
		{providers.Timeout, state.Replacing},
		{providers.Stale, ""},
		{providers.Unsafe, ""},
	} {
		t.Run(string(test.outcome), func(t *testing.T) {
			const named = "vm \"a\" {\n  name = \"one\"\n  lifecycle {\n    on_change = { name = \"replace\" }\n  }\n}\n"
			b := newBench(t, named)
			if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
				t.Fatal(summary, err)
			}
			b.spec(strings.Replace(named, "one", "two", 1))
			b.memory.fail["delete vm.a"] = &providers.Problem{Outcome: test.outcome, Err: errors.New("planted")}
			if _, err := b.apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			how := ""
			for _, e := range b.snapshot().Interrupted {
				how += e.How
			}
			if how != test.begun {
				t.Errorf("begun: %q; want %q", how, test.begun)
			}
			b.memory.fail = map[string]*providers.Problem{}
			if summary, err := b.apply(t.Context()); err != nil || !summary.OK() || len(b.snapshot().Interrupted) > 0 {
				t.Errorf("apply again: %+v, %v, interrupted %v", summary, err, b.snapshot().Interrupted)
			}
		})
	}
}

// row X20: an identical apply keeps the generation, an effective change adds one.
func TestGeneration(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	for i, source := range []string{
		"vm \"a\" {}\n", "vm \"a\" {}\n",
		"vm \"a\" {\n  cpus = 1\n}\n", "vm \"a\" {\n  cpus   = 1 # the same\n}\n",
		"vm \"a\" {\n  cpus = 1\n  stop {\n    grace = \"1m\"\n  }\n}\n",
	} {
		b.spec(source)
		if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
			t.Fatal(summary, err)
		}
		if got, want := b.records()["vm.a"].Generation, []uint64{1, 1, 2, 2, 3}[i]; got != want {
			t.Errorf("generation after apply %d is %d, want %d", i, got, want)
		}
	}
}

func TestStalePlanChangesNothing(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	b.spec("vm \"a\" {\n  cpus = 1\n}\n")
	b.run.Watch = func(e executor.Event) {
		if e.Kind == executor.StepStarted && e.Step.Op == "stop" { // somebody else was faster
			b.memory.mu.Lock()
			defer b.memory.mu.Unlock()
			for _, o := range b.memory.objects {
				o.mark.Generation = 9
			}
		}
	}
	done := len(b.memory.done)
	summary, err := b.apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(summary.Failed) != 1 || summary.Failed[0].Failure.Outcome != providers.Stale {
		t.Errorf("summary: %+v; want one stale step", summary)
	}
	if got := b.memory.done[done:]; len(got) > 0 {
		t.Errorf("done on a stale plan: %v", got)
	}
}

func TestInterruptEndsWaits(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\nvm \"b\" {\n  depends_on = [vm.a]\n}\n")
	ctx, cancel := context.WithCancel(t.Context())
	b.memory.hold["wait_ssh vm.a"] = make(chan struct{})
	b.run.Watch = func(e executor.Event) {
		if e.Kind == executor.StepProgress && e.Step.Op == "wait_ssh" {
			cancel()
		}
	}
	summary, err := b.apply(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !summary.Interrupted || len(summary.NotRun) != 3 {
		t.Errorf("interrupted %t, not run %v; want true and all of vm.b", summary.Interrupted, steps(summary.NotRun))
	}
	if r, ok := b.records()["vm.a"]; !ok || !r.Values.GetAttr("running").True() {
		t.Errorf("vm.a runs, and the record does not say so: %+v", r)
	}
}

// Anything but a wait ends safely before an interrupted apply does.
func TestInterruptLetsStepsEnd(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	b.memory.hold["define vm.a"] = release
	b.run.Watch = func(e executor.Event) {
		if e.Kind == executor.StepProgress && e.Step.Op == "define" {
			cancel()
			close(release)
		}
	}
	summary, err := b.apply(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"define vm.a"}, results(summary.Done)); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if !summary.Interrupted || len(summary.NotRun) != 2 {
		t.Errorf("interrupted %t, not run %v; want true and two steps", summary.Interrupted, steps(summary.NotRun))
	}
}

func TestParallelism(t *testing.T) {
	b := newBench(t, "vm \"w\" {\n  for_each = toset([\"a\", \"b\", \"c\"])\n}\n")
	b.run.Parallelism = 2
	running, most := 0, 0
	b.run.Watch = func(e executor.Event) {
		switch e.Kind {
		case executor.StepStarted:
			running++
		case executor.StepDone, executor.StepFailed, executor.StepWarned:
			running--
		case executor.StepWaiting, executor.StepProgress, executor.ConditionChanged, executor.Halted:
		}
		most = max(most, running)
	}
	// Two defines have to be under way at once for either to end.
	both := make(chan struct{})
	b.memory.hold[`define vm.w["a"]`], b.memory.hold[`define vm.w["b"]`] = both, both
	b.memory.entered = make(chan string)
	go func() {
		seen := map[string]bool{}
		for op := range b.memory.entered {
			if seen[op] = true; len(seen) == 2 {
				close(both)
			}
		}
	}()
	summary, err := b.apply(t.Context())
	close(b.memory.entered)
	if err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	if most != 2 {
		t.Errorf("at most %d steps at a time, want 2", most)
	}
}

// row A40: work on one address changes only its own record and object.
func TestOneAddressAtATime(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\nvm \"b\" {}\n")
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	before, objects := b.records()["vm.b"], len(b.memory.done)
	a := spec.Address{Kind: spec.VM, Name: "a"}
	b.options.Scope.Targets = []spec.Address{a}
	b.options.Running = map[spec.Address]bool{a: false}
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() || len(summary.Down) > 0 {
		t.Fatal(summary, err)
	}
	if diff := cmp.Diff([]string{"stop vm.a"}, b.memory.done[objects:]); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	after := b.records()
	if !after["vm.b"].Values.RawEquals(before.Values) || after["vm.b"].Starts != before.Starts {
		t.Error("the record of vm.b changed with vm.a")
	}
	if got := after["vm.a"]; got.Values.GetAttr("running").True() || got.LastStop != "graceful" {
		t.Errorf("vm.a: running %#v, last stop %q; want off, graceful", got.Values.GetAttr("running"), got.LastStop)
	}
}

func TestReferencesAreResolvedBeforeTheirStep(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\nvm \"b\" {\n  ssh {\n    user = \"u${vm.a.ssh_port}\"\n  }\n}\n")
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	port := b.records()["vm.a"].Values.GetAttr("ssh_port").AsBigFloat()
	if got, want := b.records()["vm.b"].Values.GetAttr("ssh").GetAttr("user").AsString(), "u"+port.Text('f', 0); got != want {
		t.Errorf("ssh.user = %q, want %q", got, want)
	}
	if got := b.pending(); len(got) > 0 {
		t.Errorf("a second plan has steps: %v", got)
	}
}

func TestDestroyLeavesNoRecord(t *testing.T) {
	b := newBench(t, two)
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	b.options.Destroy = true
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	if got := slices.Collect(maps.Keys(b.records())); len(got) > 0 || len(b.memory.objects) > 0 {
		t.Errorf("left: records %v, %d objects", got, len(b.memory.objects))
	}
}

// Nothing else gets the ID of an object that was let go of, wherever the run ended.
func TestLettingGoKeepsTheID(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	b.must()
	id := b.records()["vm.a"].ID
	b.spec("removed {\n  from    = vm.a\n  destroy = false\n}\n")
	b.memory.fail["unmark vm.a"] = &providers.Problem{Outcome: providers.Failed, Err: errors.New("no space left on device")}
	if summary, err := b.apply(t.Context()); err != nil || summary.OK() {
		t.Fatal(summary, err)
	}
	want := map[string]spec.Address{id: {}}
	if d := cmp.Diff(want, b.snapshot().Forgotten); d != "" || len(b.records()) != 1 {
		t.Fatalf("before its mark is off: %d records, forgotten (-want +got):\n%s", len(b.records()), d)
	}
	delete(b.memory.fail, "unmark vm.a")
	b.must()
	if d := cmp.Diff(want, b.snapshot().Forgotten); d != "" || len(b.records()) != 0 {
		t.Fatalf("%d records, forgotten (-want +got):\n%s", len(b.records()), d)
	}
	b.spec("vm \"a\" {\n  name = \"again\"\n}\n")
	b.must()
	if again := b.records()["vm.a"].ID; again == id || len(b.memory.objects) != 2 || b.memory.objects[providers.ID(id)].mark != (providers.Mark{}) {
		t.Errorf("made as %s beside %s, %d objects", again, id, len(b.memory.objects))
	}

	// Nothing is kept of an object that is gone.
	delete(b.memory.objects, providers.ID(b.records()["vm.a"].ID))
	b.spec("")
	b.must()
	if d := cmp.Diff(want, b.snapshot().Forgotten); d != "" || len(b.records()) != 0 {
		t.Errorf("%d records, forgotten (-want +got):\n%s", len(b.records()), d)
	}
}

// The record of an object that another data directory changed is brought up to date without a
// step.
func TestRecordCatchesUp(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	b.must()
	id := b.records()["vm.a"].ID
	o := b.memory.objects[providers.ID(id)]
	o.mark.Generation = 4
	attrs := o.attrs.AsValueMap()
	attrs["cpus"] = cty.NumberIntVal(3)
	o.attrs = cty.ObjectVal(attrs)
	b.spec("vm \"a\" {\n  cpus = 3\n}\n")
	if got := b.pending(); len(got) > 0 {
		t.Fatalf("pending: %v", got)
	}
	b.memory.done = nil
	b.must()
	if r := b.records()["vm.a"]; r.Generation != 4 || !r.Values.GetAttr("cpus").RawEquals(cty.NumberIntVal(3)) || !r.Conditions.Satisfied(condition.SSHReady, 4) || len(b.memory.done) > 0 {
		t.Errorf("the record is of generation %d with cpus %#v, conditions %+v; done: %v", r.Generation, r.Values.GetAttr("cpus"), r.Conditions, b.memory.done)
	}
}

// A replacement that got half way is remembered as what it was, and goes on.
func TestHalfReplacement(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	old := b.records()["vm.a"].ID
	b.spec("vm \"a\" {\n  name = \"other\"\n}\n")
	b.options.Allow.Replace = map[spec.Address]bool{{Kind: spec.VM, Name: "a"}: true}
	b.memory.fail["define vm.a"] = &providers.Problem{Outcome: providers.Failed, Err: errors.New("planted")}
	if summary, err := b.apply(t.Context()); err != nil || len(summary.Failed) != 1 || len(summary.Down) != 1 {
		t.Fatal(summary, err)
	}
	if r := b.records()["vm.a"]; r.ID == old || r.Name != "other" || !r.Reserved || r.Values.GetAttr("running").True() {
		t.Errorf("record: ID kept %t, name %q, reserved %t, running %#v; want false, other, true, false", r.ID == old, r.Name, r.Reserved, r.Values.GetAttr("running"))
	}
	if diff := cmp.Diff([]string{"define vm.a", "start vm.a", "wait_ssh vm.a"}, b.pending()); diff != "" {
		t.Errorf("next plan (-want +got):\n%s", diff)
	}
	b.memory.fail = map[string]*providers.Problem{}
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() || b.records()["vm.a"].Name != "other" {
		t.Fatal(summary, err, b.records()["vm.a"].Name)
	}
}

// A replacement that failed and brought the old object back leaves the record as it was before, and nothing down.
func TestRestoredReplacement(t *testing.T) {
	for _, restored := range []bool{true, false} {
		b := newBench(t, "vm \"a\" {}\n")
		if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
			t.Fatal(summary, err)
		}
		old := b.records()["vm.a"]
		b.spec("vm \"a\" {\n  name = \"other\"\n}\n")
		b.options.Allow.Replace = map[spec.Address]bool{{Kind: spec.VM, Name: "a"}: true}
		b.memory.fail["start vm.a"] = &providers.Problem{Outcome: providers.Failed, Err: errors.New("planted"), Restored: restored}
		summary, err := b.apply(t.Context())
		if err != nil || len(summary.Failed) != 1 {
			t.Fatal(summary, err)
		}
		if down := len(summary.Down) > 0; down == restored {
			t.Errorf("restored %t: down are %v", restored, summary.Down)
		}
		r := b.records()["vm.a"]
		if kept := r.ID == old.ID && r.Name == old.Name && r.Generation == old.Generation && r.Replaced == old.Replaced; kept != restored {
			t.Errorf("restored %t: the record is of %s %q, generation %d, replaced %d times; before it was %s %q, %d, %d",
				restored, r.ID, r.Name, r.Generation, r.Replaced, old.ID, old.Name, old.Generation, old.Replaced)
		}
	}
}

func TestReplaceCounts(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	old := b.records()["vm.a"].ID
	b.spec("vm \"a\" {\n  name = \"other\"\n}\n")
	b.options.Allow.Replace = map[spec.Address]bool{{Kind: spec.VM, Name: "a"}: true}
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	r := b.records()["vm.a"]
	if r.Replaced != 1 || r.ID == old || r.Name != "other" || len(b.memory.objects) != 1 {
		t.Errorf("record: replaced %d, ID kept %t, name %q, %d objects; want 1, false, other, 1", r.Replaced, r.ID == old, r.Name, len(b.memory.objects))
	}
	if got := b.pending(); len(got) > 0 {
		t.Errorf("a second plan has steps: %v", got)
	}
}

// A step whose provider panics has failed, is tried once, and ends no other step.
func TestAPanicIsAFailure(t *testing.T) {
	b := newBench(t, two)
	b.memory.panics = "start vm.a"
	summary, err := b.apply(t.Context())
	if err != nil || summary.OK() || len(summary.Failed) != 1 {
		t.Fatalf("apply: %+v, %v; one step fails", summary, err)
	}
	f := summary.Failed[0].Failure
	if f.Code != "panic" || !strings.Contains(f.Error(), "the provider panicked at executor/memory_test.go:") || !strings.HasSuffix(f.Error(), ": planted") {
		t.Errorf("it failed with %s: %v", f.Code, f)
	}
	starts := 0
	for _, line := range b.log {
		if line == "step_started start vm.a" {
			starts++
		}
	}
	if starts != 1 {
		t.Errorf("started %d times:\n%s", starts, strings.Join(b.log, "\n"))
	}
}

// Nobody knows what is inside of a VM that is imported, once the record of something in which people work was removed by hand.
func TestAnImportAfterWorkWasForgotten(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		b := newBench(t, "vm \"a\" {}\n")
		b.must()
		id := b.records()["vm.a"].ID
		b.spec("removed {\n  from    = vm.a\n  destroy = false\n}\n")
		b.must()
		if forgotten {
			journal, err := b.folder.Open(t.Context(), state.Owner{Command: "state rm"})
			if err != nil {
				t.Fatal(err)
			}
			w := spec.Address{Kind: spec.Workspace, Name: "w"}
			if err := errors.Join(journal.Append(t.Context(), state.Entry{Kind: state.Note, Op: state.Forgotten, Run: "rm", Address: w, ID: "w1"}), journal.Close()); err != nil {
				t.Fatal(err)
			}
		}
		b.spec(fmt.Sprintf("vm \"a\" {}\nimport {\n  to = vm.a\n  id = %q\n}\n", id))
		b.must()
		if r := b.records()["vm.a"]; r.ID != id || r.Found != forgotten {
			t.Errorf("work was forgotten: %t; its record is of %s, found %t", forgotten, r.ID, r.Found)
		}
	}
}
