package sim_test

import (
	"context"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/real"
	"vmctl/providers"
)

// Every kind of fault strikes every operation that it can, once. After it, the same action,
// or the one that a plan would choose then, reaches the same end.
func TestFaults(t *testing.T) {
	real.Long(t)
	for _, tc := range []struct {
		op, kind string
		before   []providers.Action // without the fault
		kills    bool               // then its process is ended
		grace    float64            // in seconds, and with the fault the wait after force too; 0: as long as it takes
		action   providers.Action
		want     string
		sees     string
		then     providers.Action
		comes    string
	}{
		{
			op: "define", kind: "fail", action: providers.Create, want: "define failed (fault): define vm.dev: injected fault: fail",
			then: providers.Create, comes: created,
		},
		{
			op: "define", kind: "unreadable", action: providers.Create, want: "define failed (unreadable): define vm.dev: lab.dev cannot be read: injected fault: unreadable",
			then: providers.Create, comes: created,
		},
		{
			op: "define", kind: "partial", action: providers.Create, want: "define failed (fault): define vm.dev: injected fault: partial",
			sees: "lab.dev off\npartial: it is half made: it has no configuration",
			then: providers.Start, comes: "redefine done, start done, wait_ready done",
		},
		{
			op: "start", kind: "partial", action: providers.Create, want: "define done, start failed (fault): start vm.dev: injected fault: partial",
			sees: "lab.dev broken\nbroken: pid N runs it, and it has no pid file", then: providers.Start, comes: recovered,
		},
		{
			op: "start", kind: "die", action: providers.Create, want: "define done, start done, wait_ready failed (ended): wait for vm.dev: it ended while it started",
			sees: diedAtStart, then: providers.Start, comes: "unlock done, start done, wait_ready done",
		},
		{
			op: "wait_ready", kind: "die", action: providers.Create, want: "define done, start done, wait_ready failed (ended): wait for vm.dev: it ended while it started",
			sees: diedAtStart, then: providers.Start, comes: "unlock done, start done, wait_ready done",
		},
		{op: "wait_ready", kind: "slow", action: providers.Create, want: created, sees: "lab.dev running", then: providers.Stop, comes: "stop graceful"},
		{
			op: "stop", kind: "late_exit", before: []providers.Action{providers.Create}, action: providers.Stop, want: "stop graceful",
			sees: "lab.dev off", then: providers.Start, comes: "start done, wait_ready done",
		},
		{
			op: "stop", kind: "partial", before: []providers.Action{providers.Create}, action: providers.Stop,
			want: "stop failed (fault): stop vm.dev: injected fault: partial", then: providers.Start, comes: "start done, wait_ready done",
		},
		{
			op: "stop", kind: "leak_pid", before: []providers.Action{providers.Create}, action: providers.Stop, want: "stop graceful",
			then: providers.Start, comes: "start done, wait_ready done",
		},
		{
			op: "stop", kind: "leak_pid", before: []providers.Action{providers.Create}, action: providers.Destroy, want: destroyed,
			sees: "", then: providers.Create, comes: created,
		},
		{
			op: "stop", kind: "unkillable", before: []providers.Action{providers.Create}, action: providers.Destroy, grace: 0.05,
			want: "stop failed (still_running): stop: it is still running after TIME (pid N runs it)", sees: "lab.dev running",
			then: providers.Destroy, comes: "stop forced, delete done",
		},
		{
			op: "unlock", kind: "fail", before: []providers.Action{providers.Create}, kills: true, action: providers.Start,
			want: "unlock failed (fault): unlock vm.dev: injected fault: fail", then: providers.Start,
			comes: "unlock done, start done, wait_ready done",
		},
		{
			op: "delete", kind: "partial", before: []providers.Action{providers.Create}, action: providers.Destroy,
			want: "stop graceful, delete failed (fault): delete vm.dev: injected fault: partial", sees: "lab.dev off",
			then: providers.Destroy, comes: "delete done",
		},
		{
			op: "delete", kind: "fail", before: []providers.Action{providers.Create}, action: providers.Destroy,
			want: "stop graceful, delete failed (fault): delete vm.dev: injected fault: fail", sees: "lab.dev off",
			then: providers.Destroy, comes: "delete done",
		},
	} {
		t.Run(tc.op+" "+tc.kind+" "+string(tc.action), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			for _, a := range tc.before {
				l.apply(a)
			}
			if tc.kills {
				l.end(t.Context(), l.processOf())
			}
			if tc.grace > 0 {
				l.policy = short(tc.grace)
			}
			l.settings = l.house.settings(false, fault(tc.op, tc.kind, times(1)))
			l.does(tc.action, tc.want)
			if tc.sees != "" {
				l.sees(tc.sees)
			}
			if tc.grace > 0 {
				l.policy = policy(tc.grace) // without the fault, force needs as long as the machine does
			}
			l.does(tc.then, tc.comes)
			if d := l.apply(providers.NoOp); d != "" {
				t.Errorf("nothing to do is %q", d)
			}
			if len(l.observe().Objects) > 0 {
				l.apply(providers.Destroy)
			}
			l.isEmpty()
		})
	}
}

// A step that hangs ends with its context, and not before.
func TestHang(t *testing.T) {
	l := newLab(t, fault("define", "hang"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want := "define timeout (no_answer): define vm.dev: the host gave no answer within 30m0s"
	if got := l.applyOn(ctx, providers.Create); got != want {
		t.Errorf("hanging: %q, want %q", got, want)
	}
	l.isEmpty()
}

// A fault is counted across processes, for each address that it names.
func TestTimes(t *testing.T) {
	t.Parallel()
	elsewhere := func(m map[string]cty.Value) { m["address"] = cty.StringVal("vm.other") }
	l := newLab(t, fault("define", "fail", times(1), elsewhere), fault("define", "fail", times(2)), fault("define", "unreadable", times(1)))
	failed := "define failed (fault): define vm.dev: injected fault: fail"
	l.does(providers.Create, failed)
	l.does(providers.Create, failed)
	l.does(providers.Create, "define failed (unreadable): define vm.dev: lab.dev cannot be read: injected fault: unreadable")
	l.does(providers.Create, created)
}

func TestBlindHost(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	l.settings = l.house.settings(false, fault("observe", "fail"))
	l.sees("disk partial: injected fault: fail\nnetwork partial: injected fault: fail\nvm partial: injected fault: fail")
	l.settings = l.house.settings(false, fault("observe", "unreadable", func(m map[string]cty.Value) { m["address"] = cty.StringVal("vm.dev") }))
	l.sees("lab.dev unknown: injected fault: unreadable")
}

func TestImpossibleFaults(t *testing.T) {
	at := func(address string) func(map[string]cty.Value) {
		return func(m map[string]cty.Value) { m["address"] = cty.StringVal(address) }
	}
	for _, tc := range []struct {
		fault cty.Value
		want  string
	}{
		{fault("start", "ignore_request"), `provider.sim.here: fault[0]: kind "ignore_request" strikes stop, recover, and op is "start"`},
		{fault("observe", "die"), `provider.sim.here: fault[0]: kind "die" strikes start, wait_ready, and op is "observe"`},
		{fault("observe", "fail", times(1)), `provider.sim.here: fault[0].times: observing writes nothing, so that a fault of op "observe" cannot be counted: leave times out`},
		{fault("start", "fail", at("dev")), `provider.sim.here: fault[0].address: `},
	} {
		l := newLab(t, tc.fault)
		_, err := simType(t).Open(t.Context(), l.settings)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("opened: %v\nwant %s", err, tc.want)
		}
	}
}
