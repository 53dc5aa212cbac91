package cli_test

import (
	"errors"
	"fmt"
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
		next    []string
	}{
		{providers.Failed, 1, "port_taken", []string{"set another host port in port_forward of vm.dev"}},
		{providers.Failed, 1, "libvirt", nil},
		{providers.Failed, 1, "", nil},
		{providers.Timeout, 4, "no_ssh", []string{"to start over: vmctl destroy --target=vm.dev, then vmctl apply"}},
		{providers.Timeout, 4, "still_running", []string{"or let vmctl force it: stop { force = true } in vm.dev"}},
		{providers.Timeout, 4, "deadline", nil},
		{providers.Unsafe, 6, "not_ours", []string{"look at it: virsh -c qemu:///session dumpxml 1", "vmctl plan"}},
		{providers.Unsafe, 6, "unverified", nil},
		{providers.Stale, 6, "stale_plan", []string{"vmctl apply"}},
		{providers.Stale, 6, "not_the_same", nil},
	} {
		h := newHouse(t, withID+small)
		h.memory.fail["start vm.dev"] = &providers.Failure{
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
}

// The same as documents: in the event, in the summary and in the last document.
func TestEveryFailureHasNextStepsAsJSON(t *testing.T) {
	h := newHouse(t, withID+small)
	h.memory.fail["start vm.dev"] = &providers.Failure{Outcome: providers.Stale, Code: "not_the_same", Err: errors.New("another")}
	e := h.run("apply", "--auto-approve", "--json").exits(6)
	const next = "plan anew, from what is there now: vmctl apply"
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
				t.Errorf("%s: next is %s, want %s", doc["type"], got, next)
			}
		}
	}
	if found != 3 {
		t.Errorf("%d failures in the stream, want 3:\n%s", found, e.stdout)
	}
}
