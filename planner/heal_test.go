package planner_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/planner"
)

// A VM that is off is started if its host was booted since the VM was last seen ready: it ended with
// the host. Without such a sign it was shut down, and stays off.
//
// row X21, of hosts that were booted
func TestHealStartsWhatEndedWithItsHost(t *testing.T) {
	ready := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const leftOff = "vm.a is left: it is off: it was shut down, and nothing shows that it failed"
	for _, test := range []struct {
		name   string
		status condition.Status
		booted time.Time
		want   string
	}{
		{"booted since", condition.True, ready.Add(time.Hour), "start vm.a"},
		{"booted before", condition.True, ready.Add(-time.Hour), leftOff},
		{"no boot is known", condition.True, time.Time{}, leftOff},
		{"never seen ready since its start", condition.Unknown, ready.Add(time.Hour), leftOff},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, one)
			s.off()
			r := s.state.Records[addr(t, "vm.a")]
			r.Values = withValue(r.Values, "running", cty.True)
			r.Conditions = condition.Set(nil).With(
				condition.Report{Type: condition.SSHReady, Status: test.status, Reason: condition.Ready},
				condition.Stamp{Generation: r.Generation, At: ready, Producer: "libvirt"})
			s.state.Records[addr(t, "vm.a")] = r
			s.system(here).inventory.Booted = test.booted
			s.options.Heal, s.options.NoWait = true, true
			world, err := planner.Observe(t.Context(), s.open, s.config, s.state, s.options)
			if err != nil {
				t.Fatal(err)
			}
			delta, err := planner.Diff(s.config, s.state, world, s.options)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			h := planner.HealingOf(delta, s.state)
			for _, a := range h.Targets {
				got += "start " + a.String()
			}
			for _, left := range h.Left {
				got += left.Address.String() + " is left: " + left.Reason
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("heal (-want +got):\n%s", diff)
			}
		})
	}
}

func withValue(v cty.Value, name string, value cty.Value) cty.Value {
	all := v.AsValueMap()
	all[name] = value
	return cty.ObjectVal(all)
}
