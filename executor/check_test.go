package executor_test

import (
	"slices"
	"strings"
	"testing"

	"vmctl/providers"
	"vmctl/spec"
)

const conditioned = `vm "a" {}
vm "b" {
  memory = "256MiB"
  lifecycle {
    precondition {
      condition     = vm.a.address == "PRE"
      error_message = "a is at ${vm.a.address}"
    }
    postcondition {
      condition     = self.address == "POST"
      error_message = "b is at ${self.address}"
    }
  }
}
vm "c" {
  depends_on = [vm.b]
}
`

func TestConditionsThatOnlyAnApplyKnows(t *testing.T) {
	for _, test := range []struct {
		name, pre, post string
		failed          string // the step; "": none
		outcome         providers.Outcome
		code, text      string
		records         []string
	}{
		{name: "they hold", pre: "127.0.0.1", post: "127.0.0.1", records: []string{"vm.a", "vm.b", "vm.c"}},
		{
			name: "a precondition", pre: "10.0.0.1", post: "127.0.0.1", failed: "define vm.b", records: []string{"vm.a"},
			outcome: providers.Unsafe, code: "precondition", text: "a precondition of vm.b does not hold: a is at 127.0.0.1",
		},
		{
			name: "a postcondition", pre: "127.0.0.1", post: "10.0.0.1", failed: "wait_ssh vm.b", records: []string{"vm.a", "vm.b"},
			outcome: providers.Failed, code: "postcondition", text: "a postcondition of vm.b does not hold: b is at 127.0.0.1",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, strings.NewReplacer("PRE", test.pre, "POST", test.post).Replace(conditioned))
			b.run.Conditions, b.run.KeepGoing = b.config.Conditions, true
			summary, err := b.apply(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for addr, r := range b.records() {
				if r.Reserved { // nothing was made yet
					continue
				}
				if !slices.Contains(test.records, addr) && test.records != nil {
					t.Errorf("%s was made", addr)
				}
			}
			if test.failed == "" {
				if !summary.OK() || len(b.records()) != len(test.records) {
					t.Errorf("failed: %+v, made: %v; want all of it done", summary.Failed, b.records())
				}
				return
			}
			if len(summary.Failed) != 1 {
				t.Fatalf("failed: %+v; want %s", summary.Failed, test.failed)
			}
			f := summary.Failed[0]
			if is := f.Step.Op + " " + f.Step.Address.String(); is != test.failed || f.Failure.Outcome != test.outcome || f.Failure.Code != test.code || f.Failure.Error() != test.text {
				t.Errorf("%s failed, %s %s: %s\nwant %s, %s %s: %s", is, f.Failure.Outcome, f.Failure.Code, f.Failure, test.failed, test.outcome, test.code, test.text)
			}
			for _, step := range summary.Done {
				if step.Step.Address == (spec.Address{Kind: spec.VM, Name: "c"}) {
					t.Errorf("%s of vm.c was done: it depends on vm.b", step.Step.Op)
				}
			}
			if _, made := b.memory.works["define vm.b"]; made != (test.code == "postcondition") {
				t.Errorf("vm.b was made: %v", made)
			}
		})
	}
}
