package sim_test

import (
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/providertest"
)

// carry carries out an action, and returns how its step op ended.
func (l *lab) carry(action providers.Action, op string) (result providers.Result, failure *providers.Problem) {
	l.t.Helper()
	p := l.open()
	o := l.observe().Objects[0]
	steps, err := p.Steps(providers.Change{
		Address: dev, Action: action, Name: o.Name, ID: o.ID, Object: &o, Want: l.want, Policy: l.policy, Generation: l.generation,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, s := range steps {
		if s.Op != op {
			continue
		}
		r, err := p.Do(l.t.Context(), providers.Work{
			Step: s, Expect: o.Fingerprint, Want: l.want, Policy: l.policy, Generation: l.generation,
		}, func(p providers.Progress) {
			if l.said != nil {
				l.said(p.Text)
			}
		})
		if err != nil && !errors.As(err, &failure) {
			l.t.Fatalf("not a failure: %v", err)
		}
		return r, failure
	}
	l.t.Fatalf("%s has no step %s", action, op)
	return providers.Result{}, nil
}

// asks puts a question to a VM over its socket, as only vmctl does otherwise.
func (l *lab) asks(what string) {
	l.t.Helper()
	c, err := net.Dial("unix", strings.TrimSuffix(l.pidFiles()[0], ".pid")+".sock")
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it was read
	if err := json.NewEncoder(c).Encode(map[string]string{"ask": what}); err != nil {
		l.t.Fatal(err)
	}
	var a struct{ OK bool }
	if err := json.NewDecoder(c).Decode(&a); err != nil || !a.OK {
		l.t.Fatalf("asked it to %s: %+v, %v", what, a, err)
	}
}

func (l *lab) evidence(of []string) string {
	for i, line := range of {
		of[i] = unsteadyTime.Replace(l.plain(line))
	}
	return strings.Join(of, "\n")
}

var unsteadyTime = strings.NewReplacer("requested after TIME", "requested", "forced after TIME", "forced")

// Another process gets the VM's pid during the wait: it lives on, and the VM counts as gone.
//
// row X02
// row L34
func TestPidGivenToAnotherDuringTheGrace(t *testing.T) {
	t.Parallel()
	l := newLab(t, fault("stop", "late_exit", func(m map[string]cty.Value) { m["delay"] = cty.NumberIntVal(3600) }))
	l.does(providers.Create, created)
	bystander := l.start("--file", "elsewhere")
	its := l.processOf()
	swap := func(text string) {
		if !strings.HasPrefix(text, "asked it to shut down") {
			return
		}
		l.edit(l.pidFiles()[0], func(m map[string]any) { m["process"].(map[string]any)["pid"] = bystander.PID })
		l.end(t.Context(), its)
	}
	l.said = swap
	r, failure := l.carry(providers.Stop, "stop")
	if failure != nil {
		t.Fatal(failure)
	}
	want := "requested\ngone after TIME: no process runs it"
	if diff := cmp.Diff(want, l.evidence(r.Evidence)); diff != "" {
		t.Errorf("what was done (-want +got):\n%s", diff)
	}
	if v, why := (process.Host{}).Verify(bystander); v != process.Match {
		t.Errorf("who has its pid now is %s: %s", v, why)
	}
	l.end(t.Context(), bystander)
}

// The VM ends by itself between the plan and the step: its files are removed all the same,
// and the step says that nobody had to ask it.
//
// row L31
func TestEndedBeforeItWasAsked(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	its, steps := l.processOf(), l.observe().Objects[0]
	l.end(t.Context(), its)
	p := l.open()
	all, err := p.Steps(providers.Change{Address: dev, Action: providers.Stop, Name: steps.Name, ID: devID, Object: &steps, Want: l.want, Policy: l.policy})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Do(t.Context(), providers.Work{Step: all[0], Expect: steps.Fingerprint, Want: l.want, Policy: l.policy}, func(providers.Progress) {})
	if err != nil || r.How != providers.AlreadyGone {
		t.Errorf("stopping what has ended: %q, %v", r.How, err)
	}
	if files := l.pidFiles(); len(files) > 0 || l.exists(l.lock()) {
		t.Errorf("left: %v", files)
	}
	l.sees("lab.dev off")
}

// A fault of a stop strikes also if the VM has ended by itself before.
func TestEndedBeforeTheFault(t *testing.T) {
	t.Parallel()
	for kind, fails := range map[string]bool{"partial": true, "leak_pid": false} {
		l := newLab(t, fault("stop", kind, times(1)))
		l.does(providers.Create, created)
		its, o := l.processOf(), l.observe().Objects[0]
		l.end(t.Context(), its)
		p := l.open()
		all, err := p.Steps(providers.Change{Address: dev, Action: providers.Stop, Name: o.Name, ID: devID, Object: &o, Want: l.want, Policy: l.policy})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Do(t.Context(), providers.Work{Step: all[0], Expect: o.Fingerprint, Want: l.want, Policy: l.policy}, func(providers.Progress) {})
		if (err != nil) != fails {
			t.Errorf("stopping what has ended under the fault %s: %v", kind, err)
		}
		if len(l.pidFiles()) != 1 {
			t.Errorf("the fault %s did not strike: no pid file is left", kind)
		}
	}
}

// A process that ends on request leaves its pid file: the stop removes the file, in whatever
// way the process ended.
//
// row L31
// row L36
func TestFilesAreRemovedHoweverItEnded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fault string
		want  providers.How
	}{{"", providers.Graceful}, {"ignore_request", providers.Forced}} {
		l := newLab(t)
		l.does(providers.Create, created)
		if tc.fault != "" {
			l.settings, l.policy = l.house.settings(false, fault("stop", tc.fault)), policy(0.05)
		}
		l.asks("ready")
		r, failure := l.carry(providers.Stop, "stop")
		if failure != nil || r.How != tc.want {
			t.Errorf("%s: it ended %q, %v, want %q", tc.fault, r.How, failure, tc.want)
		}
		if files := l.pidFiles(); len(files) > 0 || l.exists(l.lock()) {
			t.Errorf("%s: left %v", tc.fault, files)
		}
	}
}

// A VM that cannot be confirmed to be gone keeps all that it has, and no further step runs.
//
// row L03
// row L08
// row L09
func TestUnkillable(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	before, its := l.tracesButLogs(), l.processOf()
	l.settings, l.policy = l.house.settings(false, fault("stop", "unkillable"), fault("recover", "unkillable")), short(0.05)
	r, failure := l.carry(providers.Stop, "stop")
	if failure == nil || failure.Outcome != providers.Failed || failure.Code != "still_running" {
		t.Fatalf("it says that it stopped: %+v, %+v", r, failure)
	}
	want := "requested\nstill running 50ms after the request\nforced\nforce reported: stop vm.dev: injected fault: unkillable"
	if diff := cmp.Diff(want, l.evidence(failure.Seen)); diff != "" {
		t.Errorf("what was seen (-want +got):\n%s", diff)
	}
	l.does(providers.Destroy, "stop failed (still_running): stop: it is still running after TIME (pid N runs it)")
	l.does(providers.RestartIt, "stop failed (still_running): stop: it is still running after TIME (pid N runs it)")
	if diff := cmp.Diff(before, l.tracesButLogs()); diff != "" {
		t.Errorf("what it has (-before +after):\n%s", diff)
	}
	l.sees("lab.dev running")
	if now := l.processOf(); now != its {
		t.Errorf("its process is %+v, and was %+v", now, its)
	}
}

// tracesButLogs returns the traces without the content of logs, which a VM writes by itself.
func (l *lab) tracesButLogs() []string {
	l.t.Helper()
	all := l.traces()
	for i, trace := range all {
		if path, rest, _ := strings.Cut(trace, " "); strings.HasSuffix(path, ".log") {
			all[i] = strings.Replace(trace, rest, "", 1)
		}
	}
	return all
}

// A VM that still starts comes up, or has had its time for that, before it is
// restarted: a request during its start is lost.
//
// row L19
func TestRestartWhileStarting(t *testing.T) {
	t.Parallel()
	never := func(m map[string]cty.Value) { m["delay"] = cty.NumberIntVal(3600) }
	for _, tc := range []struct {
		name, heard string
		wait        float64 // in seconds
		how         providers.How
		want        string
	}{
		{
			"it comes up", "boot", 60, providers.Graceful,
			"it was still starting, and came up\nrequested\ngone after TIME: no process runs it",
		},
		{
			"it does not", "", 0.05, providers.Forced,
			"it was still starting, and did not come up within 50ms\nrequested\nstill running 50ms after the request\nforced\ngone after TIME: no process runs it",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, fault("start", "slow", never))
			l.policy = withAttr(policy(0.05), "ssh", cty.ObjectVal(map[string]cty.Value{
				"wait": cty.False, "wait_timeout": cty.NumberFloatVal(tc.wait),
			}))
			if tc.how == providers.Graceful {
				l.policy = withAttr(l.policy, "stop", policy(60).GetAttr("stop"))
			}
			l.does(providers.Create, "define done, start done")
			l.said = func(text string) {
				if tc.heard != "" && strings.HasPrefix(text, "it is still starting") {
					l.asks(tc.heard)
				}
			}
			r, failure := l.carry(providers.RestartIt, "stop")
			if failure != nil || r.How != tc.how {
				t.Fatalf("it went down %q: %v", r.How, failure)
			}
			if diff := cmp.Diff(tc.want, l.evidence(r.Evidence)); diff != "" {
				t.Errorf("what was done (-want +got):\n%s", diff)
			}
		})
	}
}

// A process that does not begin to listen is ended when its time is over; its log is kept,
// and named.
//
// row L28
// row L44
func TestStartThatHangs(t *testing.T) {
	t.Parallel()
	l := newLab(t, fault("start", "hang", times(1)))
	l.policy = withAttr(l.policy, "start", cty.ObjectVal(map[string]cty.Value{"timeout": cty.NumberFloatVal(0.5)}))
	l.does(providers.Create, "define done, start timeout (no_answer): start vm.dev: its process did not listen within 500ms, and was ended")
	if all := l.processes(t.Context()); len(all) > 0 {
		t.Errorf("it runs on: %+v", all)
	}
	if log := l.read(l.log()); !strings.Contains(log, "the VM hangs, as it was told to") {
		t.Errorf("its log has %q", log)
	}
	l.sees("lab.dev off")
	l.does(providers.Start, "start done, wait_ready done")
	l.does(providers.Destroy, destroyed)
	l.isEmpty()
}

// A process that ends at once fails the start at once, and its log is named.
//
// row L44
func TestStartThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.want = withAttr(l.want, "running", cty.False)
	l.does(providers.Create, "define done")
	l.env = isVM + "=ends"
	_, failure := l.carry(providers.Start, "start")
	if failure == nil || failure.Code != "not_started" {
		t.Fatalf("the start came to %+v", failure)
	}
	got := strings.Join(append(append([]string{failure.Error()}, failure.Seen...), providertest.Lines(failure.Next)...), "\n")
	want := "start vm.dev: its process ended, and did not say why: pid N (sim.test): exit status 3\n" +
		"its log says: there is nothing to boot\nsee its log: DIR/run/KEY.log\nvmctl plan"
	if diff := cmp.Diff(want, l.plain(got)); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
	if log := l.read(l.log()); log != "there is nothing to boot\n" {
		t.Errorf("its log has %q", log)
	}
	l.env = ""
	l.does(providers.Start, "start done, wait_ready done")
}

// log returns the content of the only log.
func (l *lab) log() string {
	l.t.Helper()
	files, err := filepath.Glob(filepath.Join(l.dir, "run", "*.log"))
	if err != nil || len(files) != 1 {
		l.t.Fatalf("logs: %v, %v", files, err)
	}
	return files[0]
}
