package sim_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/clock"
	"vmctl/internal/process"
	"vmctl/internal/real"
	"vmctl/providers"
	"vmctl/providers/sim"
)

func newAgentLab(t *testing.T, faults ...cty.Value) *lab {
	l := newLab(t)
	l.hostAgent = true
	l.settings = l.house.settings(false, faults...)
	return l
}

const (
	agentFiles  = ".ha"
	driverFiles = ""
)

// runFile returns the path of a file of the host agent or of the driver.
func (l *lab) runFile(of, suffix string) string {
	l.t.Helper()
	all, err := filepath.Glob(filepath.Join(l.dir, "run", "*.log"))
	if err != nil || len(all) != 1 {
		l.t.Fatalf("logs: %v, %v", all, err)
	}
	return strings.TrimSuffix(all[0], ".log") + of + suffix
}

// recorded returns the process that a pid file names, nil if there is none.
func (l *lab) recorded(of string) *process.Identity {
	l.t.Helper()
	path := l.runFile(of, ".pid")
	if !l.exists(path) {
		return nil
	}
	var f struct{ Process *process.Identity }
	if err := json.Unmarshal([]byte(l.read(path)), &f); err != nil {
		l.t.Fatal(err)
	}
	return f.Process
}

// tell tells a process of the VM something over its socket.
func (l *lab) tell(of, what string) {
	l.t.Helper()
	c, err := net.Dial("unix", l.runFile(of, ".sock"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it was read
	var a struct{ OK bool }
	if err := json.NewEncoder(c).Encode(map[string]string{"ask": what}); err != nil {
		l.t.Fatal(err)
	}
	if err := json.NewDecoder(c).Decode(&a); err != nil || !a.OK {
		l.t.Fatalf("told to %s: %v, %v", what, a, err)
	}
}

// become brings a process of the VM into a state.
func (l *lab) become(of, state string) {
	l.t.Helper()
	pid, socket := l.runFile(of, ".pid"), l.runFile(of, ".sock")
	switch state {
	case "alive":
		return
	case "deaf":
		l.remove(socket)
		return
	}
	id := *l.recorded(of)
	l.tell(of, "die")
	if err := (process.Host{}).Wait(l.t.Context(), id); err != nil {
		l.t.Fatal(err)
	}
	switch state {
	case "none":
		l.remove(pid)
		l.remove(socket)
	case "reused":
		l.edit(pid, func(m map[string]any) { m["process"].(map[string]any)["pid"] = os.Getpid() })
	}
}

// Whatever has become of a host agent, of its driver and of the lock: the state is seen with
// evidence, and one apply of the recipe leads to what is wanted. It asks before it forces, frees
// no lock of a process that lives, and leaves no process that is not recorded.
func TestTwoProcessesInEveryState(t *testing.T) {
	real.Long(t)
	for _, agent := range []string{"none", "alive", "dead", "reused", "deaf"} {
		for _, driver := range []string{"none", "alive", "dead", "reused"} {
			for _, lock := range []string{"left", "gone"} {
				if lock == "gone" && testing.Short() {
					continue
				}
				for _, wanted := range []string{providers.StateRunning, providers.StateOff} {
					t.Run(fmt.Sprintf("agent %s, driver %s, lock %s, wanted %s", agent, driver, lock, wanted), func(t *testing.T) {
						t.Parallel()
						l := newAgentLab(t)
						l.does(providers.Create, created)
						l.become(agentFiles, agent)
						l.become(driverFiles, driver)
						if lock == "gone" {
							l.remove(sim.LockPath(l.dir, "lab.dev"))
						}
						l.isInState(agent, driver)
						l.converges(wanted)
					})
				}
			}
		}
	}
}

// isInState checks the verdict on a host agent and its driver.
func (l *lab) isInState(agent, driver string) {
	l.t.Helper()
	state, evidence := providers.StateOff, ""
	switch lives := driver == "alive"; {
	case agent == "alive" && lives:
		state = providers.StateRunning
	case agent == "alive":
		evidence = "its host agent (pid N) runs, and no driver"
	case agent == "deaf" && lives:
		evidence = "its host agent (pid N) runs, and does not answer"
	case agent == "deaf":
		evidence = "its host agent (pid N) runs, and does not answer, and no driver runs"
	case lives:
		evidence = "its driver (pid N) runs, and no host agent"
	}
	switch {
	case agent == "dead" && driver == "alive":
		evidence += ": no process has pid N"
	case agent == "reused" && driver == "alive":
		evidence += ": pid N belongs to another process now"
	}
	if agent == "alive" || agent == "deaf" {
		evidence += map[string]string{
			"dead":   ": its pid file names a process that is gone: no process has pid N",
			"reused": ": its pid file names a process that is gone: pid N belongs to another process now",
		}[driver]
	}
	leftover := agent == "dead" || agent == "reused" || driver == "dead" || driver == "reused"
	o := l.vm()
	if evidence != "" {
		state = providers.StateBroken
	}
	if o.State != state {
		l.t.Errorf("it is %s, want %s", o.State, state)
	}
	found := map[providers.FindingKind]string{}
	for _, f := range o.Findings {
		found[f.Kind] = l.plain(strings.Join(f.Evidence, "; "))
	}
	if got := found[providers.FindBroken]; !strings.HasPrefix(got, evidence) || evidence == "" && got != "" {
		l.t.Errorf("it is broken because %q, want %q", got, evidence)
	}
	if _, got := found[providers.FindLeftover]; state == providers.StateOff && got != leftover {
		l.t.Errorf("remains are found: %t, want %t", got, leftover)
	}
}

// next returns the action that a plan would choose.
func (l *lab) next(wanted string) providers.Action {
	l.t.Helper()
	switch state := l.vm().State; {
	case state == wanted && wanted == providers.StateRunning:
		return providers.NoOp
	case state == wanted:
		return providers.Update
	case wanted == providers.StateRunning:
		return providers.Start
	default:
		return providers.Stop
	}
}

// converges applies once what a plan would, and checks that all is as wanted then.
func (l *lab) converges(wanted string) {
	l.t.Helper()
	action, lived := l.next(wanted), len(l.processes(l.t.Context())) > 0
	did := l.apply(action)
	if strings.Contains(did, "forced") || strings.Contains(did, "failed") {
		l.t.Errorf("%s: %s", action, did)
	}
	if lived && action != providers.NoOp && !strings.Contains(did, "graceful") {
		l.t.Errorf("%s of a VM with processes: %s, and nothing was asked to end", action, did)
	}
	l.isTidy(wanted)
}

// isTidy checks that the VM is in a state, without findings, and that exactly the recorded
// processes run, and hold its lock.
func (l *lab) isTidy(wanted string) {
	l.t.Helper()
	if o := l.vm(); o.State != wanted || len(o.Findings) > 0 {
		l.t.Errorf("it is %s, want %s; findings %+v", o.State, wanted, o.Findings)
	}
	var recorded []int
	for _, of := range []string{agentFiles, driverFiles} {
		if id := l.recorded(of); id != nil {
			recorded = append(recorded, id.PID)
		}
	}
	running := []int{}
	for _, id := range l.processes(l.t.Context()) {
		running = append(running, id.PID)
	}
	slices.Sort(recorded)
	slices.Sort(running)
	if !slices.Equal(recorded, running) {
		l.t.Errorf("pids %v run, and %v are recorded", running, recorded)
	}
	count := map[string]int{providers.StateRunning: 2, providers.StateOff: 0}[wanted]
	if len(running) != count {
		l.t.Errorf("%d processes run it, want %d", len(running), count)
	}
	if wanted == providers.StateOff {
		if _, err := os.Lstat(sim.LockPath(l.dir, "lab.dev")); err == nil {
			l.t.Error("it is off, and its lock is there")
		}
	}
}

// A driver without its host agent is asked over its own socket, and a host agent by itself.
func TestEachProcessIsAsked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ agent, driver, says string }{
		{"alive", "alive", "the host agent asks its driver to power down"},
		{"dead", "alive", "the VM was asked over its socket to end"},
		{"deaf", "alive", "the VM was asked over its socket to end"},
		{"alive", "dead", "the host agent was requested to end"},
	} {
		l := newAgentLab(t)
		l.does(providers.Create, created)
		l.become(agentFiles, tc.agent)
		l.become(driverFiles, tc.driver)
		l.does(providers.Stop, "stop graceful")
		if log := l.read(l.runFile("", ".log")); !strings.Contains(log, tc.says) {
			t.Errorf("of an agent that is %s and a driver that is %s, the log says\n%swant %s", tc.agent, tc.driver, log, tc.says)
		}
	}
}

// A driver that does not hear, and a host agent that neither hears nor answers, are asked first,
// and forced when the grace is over.
func TestTwoProcessesAreForcedLast(t *testing.T) {
	t.Parallel()
	orphan := newAgentLab(t)
	orphan.does(providers.Create, created)
	orphan.tell(driverFiles, "deaf")
	orphan.become(agentFiles, "dead")
	orphan.isForced()
	hanging := newAgentLab(t)
	hanging.does(providers.Create, created)
	hanging.become(agentFiles, "dead")
	hanging.replaceAgent()
	hanging.sees("lab.dev broken\nbroken: its host agent (pid N) runs, and does not answer")
	hanging.isForced()
}

// A client that connects and asks nothing delays neither the answers to others nor the end.
func TestSilentClientDelaysNobody(t *testing.T) {
	t.Parallel()
	l := newAgentLab(t)
	l.does(providers.Create, created)
	for _, of := range []string{agentFiles, driverFiles} {
		c, err := net.Dial("unix", l.runFile(of, ".sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // it asks nothing
	}
	l.sees("lab.dev running")
	l.does(providers.Stop, "stop graceful")
}

// isForced checks that a recovery asks first and forces then.
func (l *lab) isForced() {
	l.t.Helper()
	l.policy = policy(0.05)
	l.does(providers.Recover, "recover forced, start done, wait_ready done")
	var order []string
	for _, line := range l.proof {
		for _, word := range []string{"requested", "forced", "gone"} {
			if strings.HasPrefix(line, word) {
				order = append(order, word)
			}
		}
	}
	if diff := cmp.Diff([]string{"requested", "forced", "gone"}, order); diff != "" {
		l.t.Errorf("what was done (-want +got):\n%s", diff)
	}
	l.isTidy(providers.StateRunning)
}

// replaceAgent puts a process in place of the host agent that hears nothing.
func (l *lab) replaceAgent() {
	l.t.Helper()
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	socket := l.runFile(agentFiles, ".sock")
	l.remove(socket)
	child, err := process.Host{}.Start(process.Command{
		Path: self, Args: []string{"--file", l.vmPath("lab.dev"), "--id", string(devID), "--mark", "null", socket}, Env: []string{isVM + "=mute"},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := child.Force(); err != nil {
			l.t.Error(err)
		}
	})
	for end := time.Now().Add(bootLimit); !l.exists(socket); clock.Pause(l.t.Context(), time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("waited in vain for %s for a process to listen at %s", bootLimit, socket)
		}
	}
	id, err := child.Capture(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"process": id})
	if err != nil {
		l.t.Fatal(err)
	}
	l.write(l.runFile(agentFiles, ".pid"), string(text))
}

// The faults name which of the two processes dies.
func TestOneOfTwoProcessesDies(t *testing.T) {
	real.Long(t)
	t.Parallel()
	for _, tc := range []struct{ op, kind, says string }{
		{"start", "die", "its host agent (pid N) runs, and no driver: its pid file names a process that is gone: no process has pid N"},
		{"wait_ready", "die", "its host agent (pid N) runs, and no driver: its pid file names a process that is gone: no process has pid N"},
		{"start", "agent_dies", "its driver (pid N) runs, and no host agent: no process has pid N"},
		{"wait_ready", "agent_dies", "its driver (pid N) runs, and no host agent: no process has pid N"},
	} {
		l := newAgentLab(t, fault(tc.op, tc.kind, times(1)))
		l.does(providers.Create, "define done, start done, wait_ready failed (broken): wait for vm.dev: "+tc.says)
		l.does(providers.Start, recovered)
		l.isTidy(providers.StateRunning)
		l.does(providers.Destroy, destroyed)
		l.isEmpty()
	}
	plain := newLab(t, fault("start", "agent_dies"))
	_, err := simType(t).Open(t.Context(), plain.settings)
	if want := `provider.sim.here: fault[0]: this provider cannot fail by kind "agent_dies"`; err == nil || err.Error() != want {
		t.Errorf("opened without host agents: %v, want %s", err, want)
	}
}

// A pid file of either process is lost: the process is found, asked to end, and another one runs.
func TestPidFileOfOneProcessLost(t *testing.T) {
	t.Parallel()
	for _, of := range []string{agentFiles, driverFiles} {
		l := newAgentLab(t)
		l.does(providers.Create, created)
		l.remove(l.runFile(of, ".pid"))
		if o := l.vm(); o.State != providers.StateBroken {
			t.Errorf("without the pid file of %q it is %s", of, o.State)
		}
		l.converges(providers.StateRunning)
	}
}

func TestStartOfTwoProcessesFails(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() }) //nolint:errcheck // the test is over
	_, port, _ := strings.Cut(taken.Addr().String(), ":")
	l := newAgentLab(t)
	l.want = withAttr(l.want, "port_forward", forwards(port))
	l.does(providers.Create, "define done, start failed (port_taken): start vm.dev: host port 127.0.0.1:N is taken")
	l.isTidy(providers.StateOff)
	l.settings = l.house.settings(false, fault("start", "hang"))
	l.want = want()
	l.policy = withAttr(policy(60), "start", cty.ObjectVal(map[string]cty.Value{"timeout": cty.NumberFloatVal(0.5)}))
	l.apply(providers.Destroy)
	if got := l.apply(providers.Create); !strings.Contains(got, "start timeout (no_answer)") {
		t.Errorf("a driver that hangs: %s", got)
	}
	l.isTidy(providers.StateOff)
}

// A lock whose holder runs is never freed, whatever has become of the VM's two processes.
func TestLockOfAnotherStays(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		agent, driver string
		action        providers.Action
		says          string
	}{
		{"alive", "dead", providers.Stop, "stop graceful"},
		{"dead", "alive", providers.Stop, "stop graceful"},
		{"dead", "dead", providers.Destroy, "delete refused (disk_locked): delete vm.dev: somebody else holds its disk"},
	} {
		l := newAgentLab(t)
		l.does(providers.Create, created)
		l.become(agentFiles, tc.agent)
		l.become(driverFiles, tc.driver)
		lock := sim.LockPath(l.dir, "lab.dev")
		l.remove(lock)
		me, err := process.Host{}.Capture(t.Context(), os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		holder, err := json.Marshal(map[string]any{"vm": devID, "process": me})
		if err == nil {
			err = os.Symlink(string(holder), lock)
		}
		if err != nil {
			t.Fatal(err)
		}
		l.does(tc.action, tc.says)
		if got, err := os.Readlink(lock); err != nil || got != string(holder) {
			t.Errorf("of an agent that is %s and a driver that is %s, the lock is %q, %v", tc.agent, tc.driver, got, err)
		}
	}
}

// Random walks: something becomes of the two processes and of the lock, an apply is struck by a
// fault, and the next one leads to what is wanted.
func TestRandomWalksOfTwoProcesses(t *testing.T) {
	real.Long(t)
	walks := 12
	if testing.Short() {
		walks = 3
	}
	states := []string{"none", "alive", "dead", "reused", "deaf"}
	faults := [][2]string{
		{"recover", "fail"},
		{"recover", "partial"},
		{"recover", "leak_pid"},
		{"stop", "partial"},
		{"stop", "leak_pid"},
		{"unlock", "fail"},
		{"start", "partial"},
		{"start", "die"},
		{"start", "agent_dies"},
		{"wait_ready", "die"},
		{"wait_ready", "agent_dies"},
	}
	for seed := range walks {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			chance := rand.New(rand.NewPCG(uint64(seed), 0)) //nolint:gosec // a walk is no secret
			l := newAgentLab(t)
			l.does(providers.Create, created)
			for range 3 {
				if l.vm().State == providers.StateRunning {
					agent, driver := states[chance.IntN(len(states))], states[chance.IntN(len(states)-1)]
					t.Logf("the agent becomes %s, the driver %s", agent, driver)
					l.become(agentFiles, agent)
					l.become(driverFiles, driver)
				}
				wanted := []string{providers.StateRunning, providers.StateOff}[chance.IntN(2)]
				f := faults[chance.IntN(len(faults))]
				l.settings = l.house.settings(false, fault(f[0], f[1]))
				t.Logf("wanted %s under the fault %s: %s", wanted, f, l.apply(l.next(wanted)))
				l.settings = l.house.settings(false)
				l.converges(wanted)
			}
		})
	}
}
