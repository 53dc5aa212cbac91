package executor_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/executor"
	"vmctl/providers"
	"vmctl/spec"
)

const refers = `vm "a" {}
vm "b" {
  memory = "256MiB"
  boot {
    kernel  = "kernel"
    cmdline = "peer=${vm.a.address}"
  }
}
`

func TestWhatWasKnownAndDiffersIsStale(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(map[string]cty.Value)
		seen   []string
	}{
		{name: "the same", change: func(map[string]cty.Value) {}},
		{name: "a size", change: func(m map[string]cty.Value) { m["memory"] = cty.NumberIntVal(1 << 30) }, seen: []string{"memory has changed since the plan was made"}},
		{name: "a part of a block that has an unknown one", change: func(m map[string]cty.Value) {
			boot := m["boot"].AsValueMap()
			boot["kernel"] = cty.StringVal("/another")
			m["boot"] = cty.ObjectVal(boot)
		}, seen: []string{"boot has changed since the plan was made"}},
		{name: "a list", change: func(m map[string]cty.Value) {
			m["restart_triggers"] = cty.MapVal(map[string]cty.Value{"a": cty.StringVal("x")})
		}, seen: []string{"restart_triggers has changed since the plan was made"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, refers)
			b.run.Resolve = func(a spec.Address, values map[spec.Address]cty.Value) (spec.Resource, error) {
				r, diags := b.config.Resolve(a, values)
				if diags.HasErrors() {
					return r, diags
				}
				m := r.Want.AsValueMap()
				test.change(m)
				r.Want = cty.ObjectVal(m)
				return r, nil
			}
			summary, err := b.apply(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(test.seen) == 0 {
				if !summary.OK() {
					t.Fatalf("%+v", summary.Failed)
				}
				if got := b.memory.works["define vm.b"].Want.GetAttr("boot").GetAttr("cmdline").AsString(); got != "peer=127.0.0.1" {
					t.Errorf("made with %q", got)
				}
				return
			}
			if len(summary.Failed) != 1 || summary.Failed[0].Failure.Outcome != providers.Stale || summary.Failed[0].Step.Op != "define" {
				t.Fatalf("failed: %+v; want a stale plan", summary.Failed)
			}
			if d := cmp.Diff(test.seen, summary.Failed[0].Failure.Seen); d != "" {
				t.Errorf("seen (-want +got):\n%s", d)
			}
			if _, begun := b.memory.works["define vm.b"]; begun {
				t.Error("it was made all the same")
			}
		})
	}
}

// An ignored attribute stays as planned, even if the other attributes were not known then.
func TestIgnoredIsNotEvaluatedAgain(t *testing.T) {
	b := newBench(t, "vm \"b\" {\n  memory = \"256MiB\"\n}\n")
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	b.spec("vm \"a\" {}\nvm \"b\" {\n  memory = \"512MiB\"\n  restart_triggers = { a = vm.a.address }\n  lifecycle {\n    ignore_changes = [memory]\n  }\n}\n")
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	w, ok := b.memory.works["redefine vm.b"]
	if !ok {
		t.Fatal("it was not redefined")
	}
	if v := w.Want.GetAttr("memory"); !v.RawEquals(cty.NumberIntVal(256 << 20)) {
		t.Errorf("redefined with %#v of memory, want the 256MiB that it has", v)
	}
	if v := w.Want.GetAttr("restart_triggers").Index(cty.StringVal("a")).AsString(); v != "127.0.0.1" {
		t.Errorf("redefined with the trigger %q", v)
	}
}

// A step may say that its object is called otherwise from then on: an imported
// volume gets an ID with its mark.
func TestAnObjectGetsTheIDThatItsStepSays(t *testing.T) {
	b := newBench(t, two)
	b.memory.rename["define vm.a"] = "other"
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	if got := b.records()["vm.a"].ID; got != "other" {
		t.Errorf("recorded with the ID %s", got)
	}
	if got := b.memory.works["start vm.a"].Object; got != "other" {
		t.Errorf("started as %s", got)
	}
	used := b.memory.works["define vm.b"].Uses[spec.Address{Kind: spec.VM, Name: "a"}]
	if want := (providers.Used{Kind: spec.VM, ID: "other", Name: "demo.a"}); used != want {
		t.Errorf("vm.b uses %+v, want %+v", used, want)
	}
	if got := b.pending(); len(got) > 0 {
		t.Errorf("a second plan has steps: %v", got)
	}
}

// What an object is called that a killed run made, and did not write down, is known from the world: what uses it gets that ID.
func TestAnObjectThatWasMadeByAKilledRunIsUsed(t *testing.T) {
	const off = "vm \"a\" {\n  running = false\n}\n"
	for entries, killed := 0, true; killed; entries++ {
		b := newBench(t, off)
		b.memory.rename["define vm.a"] = "other"
		store := b.folder
		b.folder = &dying{Store: store, entries: entries}
		_, err := b.apply(t.Context())
		if killed = errors.Is(err, errKilled); err != nil && !killed {
			t.Fatal(err)
		}
		b.folder = store
		b.spec(off + "vm \"b\" {\n  depends_on = [vm.a]\n}\n")
		b.must()
		used := b.memory.works["define vm.b"].Uses[spec.Address{Kind: spec.VM, Name: "a"}]
		if used.ID != "other" {
			t.Errorf("killed after %d entries: vm.b uses %s, want other", entries, used.ID)
		}
	}
}

// A step that waits for a claim that could not be freed does not begin.
func TestAClaimThatIsNotFreed(t *testing.T) {
	forward := func(vm, port string) string {
		return "vm \"" + vm + "\" {\n  port_forward {\n    guest = 80\n    host  = " + port + "\n  }\n}\n"
	}
	b := newBench(t, forward("a", "8080")+forward("b", "8081"))
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	b.spec(forward("a", "8082") + forward("b", "8080"))
	b.memory.fail["detach vm.a"] = &providers.Problem{Outcome: providers.Failed, Err: errors.New("planted")}
	b.run.KeepGoing = true
	delete(b.memory.works, "redefine vm.b")
	summary, err := b.apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, begun := b.memory.works["redefine vm.b"]; begun {
		t.Error("vm.b took a port that vm.a has not freed")
	}
	if d := cmp.Diff([]string{"detach vm.a"}, results(summary.Failed)); d != "" {
		t.Errorf("failed (-want +got):\n%s", d)
	}
}

// After one instance has failed, no other instance takes its turn, whatever else goes on.
func TestARolloutEndsAtItsFirstFailure(t *testing.T) {
	const web = "vm \"w\" {\n  for_each = toset([\"a\", \"b\", \"c\", \"d\"])\n  rollout {\n    max_unavailable = 2\n  }\n"
	b := newBench(t, web+"}\nvm \"x\" {}\n")
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	b.spec(web + "  cpus = 1\n}\nvm \"x\" {\n  cpus = 1\n}\n")
	b.memory.fail[`wait_ssh vm.w["a"]`] = &providers.Problem{Outcome: providers.Failed, Err: errors.New("planted")}
	b.run.KeepGoing = true
	// b waits until a has failed.
	failed := make(chan struct{})
	b.memory.hold[`start vm.w["b"]`] = failed
	b.run.Watch = func(e executor.Event) {
		if e.Kind == executor.StepFailed {
			close(failed)
		}
	}
	clear(b.memory.works)
	summary, err := b.apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{`stop vm.w["c"]`, `stop vm.w["d"]`} {
		if _, begun := b.memory.works[op]; begun {
			t.Errorf("%s was begun after one had not come back", op)
		}
	}
	if len(summary.Down) > 0 {
		t.Errorf("down: %v; want none", summary.Down)
	}
	for _, up := range []string{`vm.w["b"]`, "vm.x"} {
		if r := b.records()[up]; !r.Values.GetAttr("running").True() || !r.Values.GetAttr("cpus").RawEquals(cty.NumberIntVal(1)) {
			t.Errorf("%s was to be changed and brought up: %#v", up, r.Values)
		}
	}
}

// An interrupt that comes when the last step has ended undoes nothing; one that comes
// while it runs is one, though it ends well.
func TestAnInterruptThatCameTooLate(t *testing.T) {
	for kind, interrupted := range map[executor.EventKind]bool{executor.StepDone: false, executor.StepStarted: true} {
		b := newBench(t, "vm \"a\" {\n  running = false\n}\n")
		ctx, cancel := context.WithCancel(t.Context())
		said := make(chan struct{})
		if interrupted {
			b.memory.hold["define vm.a"] = said
		}
		b.run.Watch = func(e executor.Event) {
			switch e.Kind {
			case kind:
				cancel()
			case executor.Halted:
				close(said)
			case executor.StepWaiting, executor.StepStarted, executor.StepProgress, executor.StepDone, executor.StepFailed, executor.StepWarned, executor.ConditionChanged:
			}
		}
		summary, err := b.apply(ctx)
		if err != nil || summary.OK() == interrupted || summary.Interrupted != interrupted || len(summary.Done) != 1 {
			t.Errorf("cancelled at %s: OK %t, interrupted %t, done %v, %v", kind, summary.OK(), summary.Interrupted, results(summary.Done), err)
		}
	}
}

// A restart for a value that is known only during apply does not happen if the value
// turns out to be what it was.
func TestAValueThatStaysTakesNothingDown(t *testing.T) {
	const user = "vm \"b\" {\n  restart_triggers = { a = vm.a.%s }\n}\n"
	for attr, want := range map[string][]string{
		"address":  {"stop vm.a", "redefine vm.a", "start vm.a", "wait_ssh vm.a", "redefine vm.b"},
		"ssh_port": {"stop vm.a", "redefine vm.a", "start vm.a", "wait_ssh vm.a", "stop vm.b", "redefine vm.b", "start vm.b", "wait_ssh vm.b"},
	} {
		t.Run(attr, func(t *testing.T) {
			user := strings.ReplaceAll(user, "%s", attr)
			if attr == "ssh_port" {
				user = strings.Replace(user, "vm.a.ssh_port", "\"${vm.a.ssh_port}\"", 1)
			}
			b := newBench(t, "vm \"a\" {}\n"+user)
			if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
				t.Fatal(summary, err)
			}
			b.spec("vm \"a\" {\n  cpus = 1\n}\n" + user)
			b.memory.done = nil
			summary, err := b.apply(t.Context())
			if err != nil || !summary.OK() {
				t.Fatal(summary, err)
			}
			if d := cmp.Diff(want, b.memory.done); d != "" {
				t.Errorf("what was done (-want +got):\n%s", d)
			}
			if got := b.pending(); len(got) > 0 {
				t.Errorf("a second plan has steps: %v", got)
			}
		})
	}
}

// A value that cannot be evaluated fails before anything goes down for it.
func TestAValueThatCannotBeSaidTakesNothingDown(t *testing.T) {
	const user = "vm \"b\" {\n  restart_triggers = { a = \"${vm.a.ssh_port}\" }\n}\n"
	mistake := errors.New("there is no such function")
	for name, resolve := range map[string]func(spec.Resource) (spec.Resource, error){
		"a mistake": func(r spec.Resource) (spec.Resource, error) { return r, mistake },
		"still unknown": func(r spec.Resource) (spec.Resource, error) {
			m := r.Want.AsValueMap()
			m["restart_triggers"] = cty.UnknownVal(cty.Map(cty.String))
			r.Want = cty.ObjectVal(m)
			return r, nil
		},
		"something else than planned": func(r spec.Resource) (spec.Resource, error) {
			m := r.Want.AsValueMap()
			m["memory"] = cty.NumberIntVal(1 << 20)
			r.Want = cty.ObjectVal(m)
			return r, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "vm \"a\" {}\n"+user)
			if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
				t.Fatal(summary, err)
			}
			b.spec("vm \"a\" {\n  cpus = 1\n}\n" + user)
			b.memory.done = nil
			b.run.Resolve = func(a spec.Address, values map[spec.Address]cty.Value) (spec.Resource, error) {
				r, diags := b.config.Resolve(a, values)
				if diags.HasErrors() {
					return r, diags
				}
				return resolve(r)
			}
			summary, err := b.apply(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{"stop vm.a", "redefine vm.a", "start vm.a", "wait_ssh vm.a"}, b.memory.done); d != "" {
				t.Errorf("what was done (-want +got):\n%s", d)
			}
			if len(summary.Failed) != 1 || summary.Failed[0].Step.Op != "stop" || summary.Failed[0].Step.Address.Name != "b" {
				t.Errorf("failed: %+v", summary.Failed)
			}
		})
	}
}
