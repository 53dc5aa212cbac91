package view_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"vmctl/cmd/internal/view"
	"vmctl/condition"
	"vmctl/spec"
)

// Each outcome of a condition, waited for and shown: only true and not applicable satisfy, and what is not applicable is shown as
// neither ready nor failed: by status not at all, by show and in JSON in its own words, and the resource is settled.
//
// row E02
func TestOutcomesAreShown(t *testing.T) {
	const target = 3
	for _, test := range []struct {
		status            condition.Status
		outcome, terminal condition.Outcome
		inStatus, inShow  string
		settled           bool
	}{
		{status: condition.True, outcome: condition.Met, terminal: condition.Met, inStatus: "ssh.ready true", inShow: "true", settled: true},
		{status: condition.False, outcome: condition.Waiting, terminal: condition.Failed, inStatus: "ssh.ready false: words", inShow: "false"},
		{status: condition.Unknown, outcome: condition.Waiting, terminal: condition.Waiting, inStatus: "ssh.ready unknown: words", inShow: "unknown"},
		{status: condition.NotApplicable, outcome: condition.Met, terminal: condition.Met, inShow: "not applicable", settled: true},
	} {
		t.Run(string(test.status), func(t *testing.T) {
			report := condition.Report{Type: condition.SSHReady, Status: test.status, Reason: "Why", Message: "words"}
			reported := condition.Set(nil).With(report, condition.Stamp{Generation: target})
			declared := condition.Declared{Type: condition.SSHReady, Producer: "tests"}
			c, outcome := reported.Await(declared, target)
			report.Terminal = true
			_, terminal := condition.Set(nil).With(report, condition.Stamp{Generation: target}).Await(declared, target)
			if outcome != test.outcome || terminal != test.terminal || c.Satisfied(target) != (test.outcome == condition.Met) {
				t.Errorf("a wait is %s, one for a terminal condition %s, satisfied %t; want %s, %s", outcome, terminal, c.Satisfied(target), test.outcome, test.terminal)
			}

			settled := condition.Settle([]condition.Condition{c}, target)
			r := view.ResourceStatus{
				Address: spec.Address{Kind: spec.VM, Name: "dev"}, State: "running",
				Conditions: []view.ConditionDocument{view.ConditionJSON(c)}, Settled: view.ConditionJSON(settled),
			}
			run := view.ConditionJSON(condition.SettleAll([]condition.Named{{Name: "vm.dev", Condition: settled}}))
			status := on(80, func(s view.Screen) {
				view.Status(s, view.StatusDocument{Settled: run, Resources: []view.ResourceStatus{r}})
			})
			wantLine := strings.TrimSpace("vm.dev    running  -    " + test.inStatus)
			if !hasLine(status, wantLine) || strings.Contains(status, "Settled: ") != test.settled || strings.Contains(status, "Not settled") == test.settled {
				t.Errorf("status shows\n%s\nwant the line %q, settled %t", status, wantLine, test.settled)
			}
			shown := on(80, func(s view.Screen) { view.Show(s, view.Shown{Status: r}) })
			if want := "ssh.ready  " + test.inShow + " (Why)"; !strings.Contains(shown, want) {
				t.Errorf("show shows\n%s\nwant %q", shown, want)
			}
			var out bytes.Buffer
			if err := view.JSON(&out, r); err != nil {
				t.Fatal(err)
			}
			var doc view.ResourceStatus
			if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
				t.Fatal(err)
			}
			if got := doc.Conditions[0].Status; got != string(test.status) || doc.Conditions[0].Condition() != c {
				t.Errorf("as JSON it is %s; want %s, and it is again %+v:\n%+v", got, test.status, c, doc.Conditions[0].Condition())
			}
			if got := doc.Settled.Status == string(condition.True); got != test.settled {
				t.Errorf("settled is %s as JSON, want %t", doc.Settled.Status, test.settled)
			}
		})
	}
}

func hasLine(text, want string) bool {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == want {
			return true
		}
	}
	return false
}
