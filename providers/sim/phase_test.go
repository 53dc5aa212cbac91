package sim_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/sim"
)

// Every combination of a VM's pid file, of processes that it does not name, and of its socket
// gives exactly one phase. The test makes all possible combinations with real processes.
//
// row L13
func TestPhases(t *testing.T) {
	want := map[string]string{
		"none none missing":      "off",
		"none none there":        "off, leftover",
		"none some missing":      "broken",
		"none some there":        "broken",
		"none unseen missing":    "unknown",
		"none unseen there":      "unknown",
		"alive none missing":     "broken",
		"alive none there":       "running",
		"alive some missing":     "broken",
		"alive some there":       "broken",
		"alive unseen missing":   "broken",
		"alive unseen there":     "running",
		"gone none missing":      "off, leftover",
		"gone none there":        "off, leftover",
		"gone some missing":      "broken",
		"gone some there":        "broken",
		"gone unseen missing":    "unknown",
		"gone unseen there":      "unknown",
		"reused none missing":    "off, leftover",
		"reused none there":      "off, leftover",
		"reused some missing":    "broken",
		"reused some there":      "broken",
		"reused unseen missing":  "unknown",
		"reused unseen there":    "unknown",
		"unknown none missing":   "unknown",
		"unknown none there":     "unknown",
		"unknown some missing":   "unknown",
		"unknown some there":     "unknown",
		"unknown unseen missing": "unknown",
		"unknown unseen there":   "unknown",
	}
	rows := map[string]string{}
	for _, row := range sim.Phases() {
		rows[row.Of] = row.State
		if row.Leftover && row.State == providers.StateOff {
			rows[row.Of] += ", leftover"
		}
	}
	for of, phase := range want {
		if rows[of] != phase {
			t.Errorf("%s is %q in the table, want %q", of, rows[of], phase)
		}
		if strings.Contains(of, " unseen ") { // only an unreadable process table gives this
			continue
		}
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.combine(strings.Fields(of))
			if got := l.phase(); got != phase {
				t.Errorf("it is %q, want %q", got, phase)
			}
		})
	}
	if len(rows) != len(want) {
		t.Errorf("the table has %d rows, want %d", len(rows), len(want))
	}
}

// combine brings the VM into the state of a row of the table.
func (l *lab) combine(of []string) {
	l.t.Helper()
	recorded, stray, socket := of[0], of[1], of[2]
	l.does(providers.Create, created)
	id, file := l.processOf(), l.pidFiles()[0]
	set := func(name string, value any) {
		l.edit(file, func(m map[string]any) { m["process"].(map[string]any)[name] = value })
	}
	switch recorded {
	case "none":
		l.end(l.t.Context(), id)
		l.remove(file)
	case "alive":
	case "gone":
		l.end(l.t.Context(), id)
	case "reused":
		l.end(l.t.Context(), id)
		set("pid", os.Getpid())
	case "unknown":
		l.end(l.t.Context(), id)
		set("host", "elsewhere")
	}
	if stray == "some" {
		l.start("--file", l.vmPath("lab.dev"), "--id", string(devID), "--mark", "null")
	}
	path := strings.TrimSuffix(file, ".pid") + ".sock"
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		l.t.Fatal(err)
	}
	if socket == "there" {
		listener, err := net.Listen("unix", path)
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { _ = listener.Close() }) //nolint:errcheck // its file may be gone
	}
}

// phase returns the observed phase of the VM as text.
func (l *lab) phase() string {
	l.t.Helper()
	inv := l.observe()
	if len(inv.Objects) == 0 {
		l.t.Fatalf("nothing is observed: %+v", inv)
	}
	o := inv.Objects[0]
	state := o.State
	if state == "" && o.Running == nil && o.Unreadable["running"] != "" {
		state = "unknown"
	}
	for _, f := range o.Findings {
		if f.Kind == providers.FindLeftover {
			state = fmt.Sprint(state, ", leftover")
		}
	}
	return state
}

// A pid file with an invalid number: no process is asked to end, and the plan cannot go on.
//
// row L05
func TestPidFileWithAnInvalidNumber(t *testing.T) {
	t.Parallel()
	for _, pid := range []int{0, 1, -5} {
		l := newLab(t)
		l.does(providers.Create, created)
		l.edit(l.pidFiles()[0], func(m map[string]any) { m["process"].(map[string]any)["pid"] = pid })
		why := fmt.Sprintf("DIR/run/KEY.pid: pid invalid: %d is not a process of ours", pid)
		l.sees("lab.dev \nrunning: " + why)
		l.does(providers.Stop, "stop failed (host): read what runs lab.dev: "+why)
		l.does(providers.Destroy, "stop failed (host): read what runs lab.dev: "+why)
		if v, reason := (process.Host{}).Verify(l.processOf()); v != process.Match {
			t.Errorf("its process is %s: %s", v, reason)
		}
	}
}
