package lima_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/sys/unix"

	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/providertest"
)

// A QEMU that does not end, though it was killed, fails the stop once force_wait is over. Its files, its lock and the
// instance stay, it is never said to be off, and nothing is done or started after that: neither by a destruction nor by a
// restart.
//
// row L03, of Lima's VMs
// row L08, of Lima's VMs
// row L09, of Lima's VMs
func TestUnkillable(t *testing.T) {
	l := newLab(t, set("params", cty.MapVal(map[string]cty.Value{"deaf": cty.StringVal("yes")})))
	l.policy = forceWait(t, time.Millisecond)
	qemu, err := (process.Host{}).Capture(t.Context(), l.pid("qemu.pid"))
	if err != nil {
		t.Fatal(err)
	}
	release := l.holdAtExit(qemu.PID)
	kept := []string{"lab.dev/lima.yaml", "lab.dev/vmctl.json", "lab.dev/disk", "lab.dev/qemu.pid", "lab.dev/qmp.sock", "_disks/lab.cache/in_use_by"}
	for _, action := range []providers.Action{providers.Stop, providers.Destroy, providers.RestartIt} {
		err := l.try(dev, action)
		if p := (*providers.Problem)(nil); !errors.As(err, &p) || p.Code != "still_running" || p.Outcome != providers.Failed {
			t.Errorf("%s: %v", action, err)
		} else if said := strings.Join(p.Seen, "\n"); !strings.Contains(said, "forced after") {
			t.Errorf("%s: it was not forced:\n%s", action, said)
		}
		if len(l.results) > 0 {
			t.Errorf("%s: %d steps were carried out", action, len(l.results))
		}
		for _, file := range kept {
			if _, err := os.Lstat(filepath.Join(l.home, file)); err != nil {
				t.Errorf("after %s: %v", action, err)
			}
		}
		if diff := cmp.Diff([]process.Identity{qemu}, l.processesOf("lab.dev")); diff != "" {
			t.Errorf("after %s its processes (-want +got):\n%s", action, diff)
		}
		if o := l.object(devID); o.State != providers.StateBroken {
			t.Errorf("after %s it is %s: %s", action, o.State, findings(o))
		}
	}
	release()
	if err := (process.Host{}).Wait(t.Context(), qemu); err != nil {
		t.Fatal(err)
	}
	if o := l.object(devID); o.State != providers.StateOff {
		t.Errorf("once it is gone it is %s", o.State)
	}
	l.do(dev, providers.Start)
}

// forceWait returns a policy that waits no longer than that for a guest that was asked, or forced, to end.
func forceWait(t *testing.T, d time.Duration) cty.Value {
	t.Helper()
	all := providertest.Waits(d).AsValueMap()
	stop := all["stop"].AsValueMap()
	stop["force_wait"] = cty.NumberFloatVal(d.Seconds())
	all["stop"] = cty.ObjectVal(stop)
	return cty.ObjectVal(all)
}

// holdAtExit lets a process be killed without an end: it is traced, and the kernel holds it where it would end, as it holds
// one whose disk does not answer. release lets it end.
func (l *lab) holdAtExit(pid int) (release func()) {
	l.t.Helper()
	traced, ended, released := make(chan error), make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // a thread is a tracer, and not a process
		defer runtime.UnlockOSThread()
		_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, unix.PTRACE_O_TRACEEXIT, 0, 0)
		if errno != 0 {
			traced <- errno
			return
		}
		traced <- nil
		err := awaitExit(pid)
		if err == nil {
			<-released
			err = unix.PtraceDetach(pid)
		}
		ended <- err
	}()
	if err := <-traced; err != nil {
		l.t.Fatalf("trace pid %d: %v", pid, err)
	}
	release = sync.OnceFunc(func() {
		close(released)
		if err := errors.Join(unix.Kill(pid, unix.SIGKILL), <-ended); err != nil { // nobody may have killed it
			l.t.Errorf("let pid %d end: %v", pid, err)
		}
	})
	l.t.Cleanup(release)
	return release
}

// awaitExit returns once a process that this thread traces stops where it would end. Until then it gets its signals.
func awaitExit(pid int) error {
	const atExit = int(unix.SIGTRAP) | unix.PTRACE_EVENT_EXIT<<8
	for {
		var status unix.WaitStatus
		switch _, err := unix.Wait4(pid, &status, unix.WALL, nil); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case !status.Stopped():
			return errors.New("it ended without a stop")
		case int(status)>>8 == atExit:
			return nil
		}
		if err := unix.PtraceCont(pid, int(status.StopSignal())); err != nil {
			return err
		}
	}
}
