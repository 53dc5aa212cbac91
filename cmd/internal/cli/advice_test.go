package cli_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"vmctl/providers"
)

// row A16: every kind of failure carries its code and what to type next, whether
// its provider knew that or not, with the flags that this run was given
func TestEveryFailureSaysWhatToTypeNext(t *testing.T) {
	text := ""
	for _, test := range []struct {
		outcome providers.Outcome
		exits   int
		code    string
		next    []providers.Advice
	}{
		{providers.Failed, 1, "port_taken", providers.Say("set another host port in port_forward of vm.dev")},
		{providers.Failed, 1, "libvirt", nil},
		{providers.Failed, 1, "", nil},
		{providers.Timeout, 4, "no_ssh", slices.Concat(providers.SayVmctl("to start over: ", "destroy", "--target=vm.dev"), providers.SayVmctl("then: ", "apply"))},
		{providers.Timeout, 4, "still_running", providers.Say("or let vmctl force it: stop { force = true } in vm.dev")},
		{providers.Timeout, 4, "deadline", nil},
		{providers.Unsafe, 6, "not_ours", slices.Concat(providers.Say("look at it: virsh -c qemu:///session dumpxml 1"), providers.Vmctl("plan"))},
		{providers.Unsafe, 6, "unverified", nil},
		{providers.Stale, 6, "stale_plan", providers.Vmctl("apply")},
		{providers.Stale, 6, "not_the_same", nil},
	} {
		h := newHouse(t, withID+small)
		h.memory.fail["start vm.dev"] = &providers.Problem{
			Outcome: test.outcome, Code: test.code, Seen: []string{"what was seen"}, Next: test.next, Err: errors.New("what went wrong"),
		}
		e := h.run("apply", "--auto-approve", "--env=test", "--target=dev").exits(test.exits)
		text += fmt.Sprintf("=== %s, code %q, %d lines of its own\n%s", test.outcome, test.code, len(test.next), e.stderr)
		delete(h.memory.fail, "start vm.dev")
	}
	golden(t, "failures", text)
}

// The next commands of a blocked change are for this instance, and not for another one of the
// same files.
func TestABlockSaysWhatToTypeHere(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve", "--env=test").exits(0)
	for _, m := range h.memory.machines {
		m.mark.Generation++
	}
	h.write("main.vmctl.hcl", withID)
	const next = "if the object really should go: vmctl --env=test destroy --target=vm.dev"
	h.run("plan", "--env=test").exits(0).says(next)
	h.run("apply", "--auto-approve", "--env=test").exits(6).says(next)
	h.run("plan", "--env=test", "--json").exits(0).says(next)
	if e := h.run("apply", "--auto-approve", "--env=test", "--json").exits(6); strings.Count(e.stdout, next) != 2 {
		t.Errorf("the plan and the error, as documents, have to say %q:\n%s", next, e.stdout)
	}
}

// The same as documents: in the event, in the summary and in the last document.
func TestEveryFailureHasNextStepsAsJSON(t *testing.T) {
	h := newHouse(t, withID+small)
	h.memory.fail["start vm.dev"] = &providers.Problem{Outcome: providers.Stale, Code: "not_the_same", Err: errors.New("another")}
	e := h.run("apply", "--auto-approve", "--json").exits(6)
	e.failsEverywhereWith("plan anew, from what is there now: vmctl apply")

	h.memory.fail["start vm.dev"] = &providers.Problem{Outcome: providers.Failed, Code: "ended", Next: providers.Vmctl("plan"), Err: errors.New("it ended")}
	e = h.run("apply", "--auto-approve", "--json", "--env=test", "--target=dev").exits(1)
	e.failsEverywhereWith("vmctl plan --env=test --target=dev")
}

// failsEverywhereWith checks that the failure has this next step in the event, in the summary
// and in the last document.
func (e ending) failsEverywhereWith(next string) {
	e.t.Helper()
	found := 0
	for _, doc := range e.documents() {
		failures := []any{doc["failure"], doc["error"]}
		if doc["type"] == "summary" {
			failures = append(failures, doc["failed"].([]any)[0].(map[string]any)["failure"])
		}
		for _, f := range failures {
			if f == nil {
				continue
			}
			found++
			if got := fmt.Sprint(f.(map[string]any)["next"]); got != "["+next+"]" {
				e.t.Errorf("%s: next is %s, want %s", doc["type"], got, next)
			}
		}
	}
	if found != 3 {
		e.t.Errorf("%d failures in the stream, want 3:\n%s", found, e.stdout)
	}
}
