package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/clock"
	"vmctl/internal/process"
	"vmctl/providers"
)

// numbers matches the process IDs in a text, which differ from run to run.
var numbers = regexp.MustCompile(`\b[0-9]{4,}\b`)

const (
	created   = "define done, start done, wait_ready done"
	recovered = "recover graceful, start done, wait_ready done"
	destroyed = "stop graceful, delete done"
	staleLock = "stale_lock: DIR/disks/lab.dev.root.lock names a process that is gone: no process has pid N"

	diedAtStart = "lab.dev off\nleftover: its pid file names a process that is gone: no process has pid N\n" + staleLock
)

func TestPidFileLost(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	l.remove(l.pidFiles()[0])
	l.sees("lab.dev broken\nbroken: pid N runs it, and it has no pid file")
	l.does(providers.Start, recovered)
	l.sees("lab.dev running")
	if n := len(l.processes(t.Context())); n != 1 {
		t.Errorf("%d processes run it", n)
	}
	l.remove(l.pidFiles()[0])
	l.does(providers.Destroy, destroyed)
	l.isEmpty()
}

func TestFileOfTheVMLost(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	l.remove(l.vmPath("lab.dev"))
	l.sees("lab.dev broken\nbroken: pid N runs it, and its file DIR/vms/lab.dev.json is gone\npartial: it is half made: it has no configuration")
	if o := l.observe().Objects[0]; o.Owner == nil || o.Owner.Of != devID || o.Owner.Address != dev {
		t.Errorf("its mark is %+v", o.Owner)
	}
	l.does(providers.Start, "recover graceful, redefine done, start done, wait_ready done")
	l.sees("lab.dev running")
	l.remove(l.vmPath("lab.dev"))
	l.does(providers.Destroy, destroyed)
	l.isEmpty()
}

// Another process has the pid now: it is never touched.
//
// row L34
// row J25
func TestPidGivenToAnother(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	gone := l.processOf()
	l.end(t.Context(), gone)
	other := newLab(t)
	other.does(providers.Create, created)
	innocent := other.processOf()
	l.edit(l.pidFiles()[0], func(m map[string]any) { m["process"].(map[string]any)["pid"] = innocent.PID })
	l.sees("lab.dev off\nleftover: its pid file names a process that is gone: pid N belongs to another process now (" +
		l.program() + ", start time N, recorded was N)\n" + staleLock)
	l.does(providers.Stop, "stop already_gone")
	l.does(providers.Start, "start done, wait_ready done")
	l.sees("lab.dev running")
	l.does(providers.Destroy, destroyed)
	other.sees("lab.dev running")
	if now := other.processOf(); now != innocent {
		t.Errorf("the other process is %+v, and was %+v", now, innocent)
	}
}

func TestPidFileThatSaysNothing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, content, why string }{
		{"torn", `{"proc`, "read DIR/run/KEY.pid: unexpected EOF"},
		{"of nobody", `{}`, "read DIR/run/KEY.pid: it names no process"},
		{"of a newer vmctl", `{"cgroup":"x"}`, `read DIR/run/KEY.pid: json: unknown field "cgroup"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.does(providers.Create, created)
			l.write(l.pidFiles()[0], tc.content)
			l.sees("lab.dev \nrunning: " + tc.why)
			l.does(providers.Stop, "stop failed (host): read what runs lab.dev: "+tc.why)
			if n := len(l.processes(t.Context())); n != 1 {
				t.Errorf("%d processes run it", n)
			}
		})
	}
}

func TestPidFileOfAnotherMachine(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	l.edit(l.pidFiles()[0], func(m map[string]any) { m["process"].(map[string]any)["host"] = "elsewhere" })
	host := l.processOf().Host
	l.sees(fmt.Sprintf("lab.dev \nrunning: DIR/run/KEY.pid: recorded on host %q, this is %q: look there", "elsewhere", host))
}

func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	second := l.start("--file", l.vmPath("lab.dev"), "--id", string(devID), "--mark", "null")
	l.sees("lab.dev broken\nbroken: pid N runs it too, beside the process that its pid file names")
	l.does(providers.Start, recovered)
	if v, _ := (process.Host{}).Verify(second); v != process.Gone {
		t.Errorf("the second process is %s", v)
	}
	l.sees("lab.dev running")
}

// start starts a VM's process as if another vmctl had.
func (l *lab) start(args ...string) process.Identity {
	l.t.Helper()
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	in, out, err := os.Pipe()
	if err != nil {
		l.t.Fatal(err)
	}
	child, err := process.Host{}.Start(process.Command{Path: self, Args: args, Env: []string{isVM + "=1"}, Stdin: in})
	if err != nil {
		l.t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "vm") // its name is short enough for a socket's
	if err != nil {
		l.t.Fatal(err)
	}
	socket := filepath.Join(folder, "sock")
	if err := json.NewEncoder(out).Encode(map[string]any{"socket": socket}); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := child.Force(); err != nil {
			l.t.Error(err)
		}
		_ = child.Wait(context.Background()) //nolint:errcheck // it was forced
		if err := os.RemoveAll(folder); err != nil {
			l.t.Error(err)
		}
	})
	for end := time.Now().Add(bootLimit); time.Now().Before(end); clock.Pause(l.t.Context(), time.Millisecond) { // until it listens: before that it holds no lock
		id, err := child.Capture(l.t.Context())
		if err != nil {
			l.t.Fatal(err)
		}
		if l.exists(socket) {
			return id
		}
	}
	l.t.Fatalf("waited in vain for %s for a process to listen at %s", bootLimit, socket)
	return process.Identity{}
}

// bootLimit is the time that a process of a test has to listen. It only separates a hang from slowness.
const bootLimit = 10 * time.Minute

func (l *lab) program() string {
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	return numbers.ReplaceAllString(self, "N")
}

func (l *lab) remove(path string) {
	l.t.Helper()
	if err := os.Remove(path); err != nil {
		l.t.Fatal(err)
	}
}

// A change behind vmctl's back is shown, in the configuration or in the running VM.
func TestChangedByHand(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	l.edit(l.vmPath("lab.dev"), func(m map[string]any) { m["config"].(map[string]any)["cpus"] = 7 })
	if o := l.observe().Objects[0]; !o.Attrs.GetAttr("cpus").RawEquals(cty.NumberIntVal(7)) || !o.Now().GetAttr("cpus").RawEquals(cty.NumberIntVal(1)) {
		t.Errorf("cpus of the file were changed, and are shown as %#v, and %#v of what runs", o.Attrs.GetAttr("cpus"), o.Live)
	}
	l.edit(l.vmPath("lab.dev"), func(m map[string]any) { m["config"].(map[string]any)["cpus"] = 1 })
	l.edit(l.pidFiles()[0], func(m map[string]any) { m["with"].(map[string]any)["cpus"] = 7 })
	want := cty.ObjectVal(map[string]cty.Value{"cpus": cty.NumberIntVal(7)})
	if live := l.observe().Objects[0].Live; live == cty.NilVal || !live.RawEquals(want) {
		t.Errorf("cpus of the running VM were changed, and are shown as %#v", live)
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.want = withAttr(l.want, "port_forward", forwards("auto"))
	l.does(providers.Create, created)
	port := l.observe().Objects[0].Attrs.GetAttr("ports").Index(cty.StringVal("80")).AsBigFloat().Text('f', 0)
	other := newLab(t)
	other.want = withAttr(other.want, "port_forward", forwards(port))
	other.does(providers.Create, "define done, start failed (port_taken): start vm.dev: host port 127.0.0.1:N is taken")
	other.sees("lab.dev off")
	l.does(providers.Destroy, destroyed)
	other.does(providers.Start, "start done, wait_ready done")
}

func withAttr(v cty.Value, name string, value cty.Value) cty.Value {
	m := v.AsValueMap()
	m[name] = value
	return cty.ObjectVal(m)
}

func TestSocketsFit(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.settings.Dir = "/a-very-long-folder/of-a-user-who-likes/long-names-of-folders/below-others/of-the-same-kind/sim-here"
	_, err := simType(t).Open(t.Context(), l.settings)
	want := "provider.sim.here: the folder /a-very-long-folder/of-a-user-who-likes/long-names-of-folders/below-others/of-the-same-kind/sim-here " +
		"is too long for the sockets inside: they would have names of 122 bytes, and the system allows 107: " +
		"choose a shorter data directory (--data-dir=DIR) or folder, or set weightless = true"
	if err == nil || err.Error() != want {
		t.Errorf("opened with a long folder: %v\nwant %s", err, want)
	}
}
