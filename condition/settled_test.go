package condition_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"vmctl/condition"
)

func said(kind string, status condition.Status, generation uint64, words string) condition.Condition {
	reason, message, _ := strings.Cut(words, ": ")
	return condition.Condition{
		Report:     condition.Report{Type: kind, Status: status, Reason: reason, Message: message, Terminal: strings.HasSuffix(words, "!")},
		Generation: generation, Producer: "tests", Since: start,
	}
}

// Each cause that keeps a resource or a run from being settled, with its reason forwarded.
//
// row E06
func TestSettledGolden(t *testing.T) {
	applied := said("spec.applied", condition.True, 4, "Applied")
	ssh := said(condition.SSHReady, condition.True, 4, "Ready")
	engine := said("engine.ready", condition.True, 4, "Ready")
	cluster := condition.Unproduced("kubernetes.ready", 4)
	var b strings.Builder
	for _, test := range []struct {
		name string
		all  []condition.Condition
	}{
		{"nothing blocks", []condition.Condition{applied, ssh, engine, cluster}},
		{"no conditions at all", nil},
		{"the spec was not applied", []condition.Condition{said("spec.applied", condition.False, 4, "Changed: memory changed"), ssh, engine, cluster}},
		{"the VM is starting", []condition.Condition{applied, said(condition.SSHReady, condition.False, 4, "Starting: it was started"), engine, cluster}},
		{"the VM failed for good", []condition.Condition{applied, said(condition.SSHReady, condition.False, 4, "StartFailed: no such kernel!"), engine, cluster}},
		{"the engine does not answer", []condition.Condition{applied, ssh, said("engine.ready", condition.False, 4, "NoAnswer: its socket refuses"), cluster}},
		{"the engine is unknown", []condition.Condition{applied, ssh, said("engine.ready", condition.Unknown, 4, "Unreachable: the guest is away"), cluster}},
		{"the engine's producer is behind", []condition.Condition{applied, ssh, said("engine.ready", condition.True, 3, "Ready"), cluster}},
		{"the engine's producer is behind and failed before", []condition.Condition{applied, ssh, said("engine.ready", condition.False, 3, "NoAnswer: it refused!"), cluster}},
		{"the engine never reported", condition.Set{applied}.Complete([]condition.Declared{{Type: "spec.applied", Producer: "plan"}, {Type: "engine.ready", Producer: "docker"}}, 4)},
		{"two block", []condition.Condition{applied, said(condition.SSHReady, condition.False, 4, "Starting: it was started"), said("engine.ready", condition.False, 4, "NoAnswer: its socket refuses")}},
	} {
		c := condition.Settle(test.all, 4)
		fmt.Fprintf(&b, "%s\n  %s %s %q terminal=%t by=%q\n", test.name, c.Status, c.Reason, c.Message, c.Terminal, c.Producer)
	}
	yes := condition.Settle(nil, 1)
	no := condition.Settle([]condition.Condition{said(condition.SSHReady, condition.False, 4, "Starting: it was started")}, 4)
	for _, test := range []struct {
		name string
		all  []condition.Named
	}{
		{"a run without resources", nil},
		{"a run of settled resources", []condition.Named{{Name: "vm.a", Condition: yes}, {Name: "vm.b", Condition: yes}}},
		{"a run with one that is not", []condition.Named{{Name: "vm.a", Condition: yes}, {Name: "vm.b", Condition: no}}},
		{"a run with several that are not", []condition.Named{{Name: "vm.a", Condition: no}, {Name: "vm.b", Condition: yes}, {Name: "vm.c", Condition: no}}},
	} {
		c := condition.SettleAll(test.all)
		fmt.Fprintf(&b, "%s\n  %s %s %q\n", test.name, c.Status, c.Reason, c.Message)
	}
	const golden = "testdata/settled.golden"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

// row E06: settled is true exactly if every condition is satisfied, and else has the reason of one that is not.
func TestSettledFollowsItsConditions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, target := sets().Draw(t, "set"), rapid.Uint64Range(0, 6).Draw(t, "target")
		settled := condition.Settle(all, target)
		met, blamed := true, false
		for _, c := range all {
			met = met && c.Satisfied(target)
			blamed = blamed || !c.Satisfied(target) && strings.Contains(settled.Message, c.Type)
		}
		if (settled.Status == condition.True) != met || !met && !blamed {
			t.Fatalf("settled: %+v, of %+v for %d", settled, all, target)
		}
		run := condition.SettleAll([]condition.Named{{Name: "vm.a", Condition: settled}})
		if run.Status != settled.Status || run.Reason != settled.Reason {
			t.Fatalf("the run: %+v; its resource: %+v", run, settled)
		}
	})
}
