package sim_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/sim"
)

func (l *lab) disk() string { return sim.DiskPath(l.dir, "lab.dev") }
func (l *lab) lock() string { return sim.LockPath(l.dir, "lab.dev") }

// hold writes a lock of the VM's disk that names a process.
func (l *lab) hold(id process.Identity) {
	l.t.Helper()
	text, err := json.Marshal(map[string]any{"vm": "someone", "process": id})
	if err != nil {
		l.t.Fatal(err)
	}
	if err := os.Symlink(string(text), l.lock()); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) exists(path string) bool {
	l.t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.t.Fatal(err)
	}
	return err == nil
}

// A guest's data stay through all events in the life of its VM, until the VM is deleted.
func TestDiskIsKept(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	work := l.read(l.disk()) + "work of the guest\n"
	l.write(l.disk(), work)
	keeps := func(after string) {
		t.Helper()
		if got := l.read(l.disk()); got != work {
			t.Errorf("after %s the disk has %q, and had %q", after, got, work)
		}
	}
	l.apply(providers.RestartIt)
	keeps("a restart")
	l.remove(l.pidFiles()[0])
	l.does(providers.Start, recovered)
	keeps("a recovery")
	l.end(t.Context(), l.processOf())
	l.apply(providers.Start)
	keeps("a crash")
	l.remove(l.vmPath("lab.dev"))
	l.apply(providers.Start)
	keeps("the loss of its file while it ran")
	l.apply(providers.Stop)
	l.remove(l.vmPath("lab.dev"))
	l.sees("lab.dev off\npartial: it is half made: it has no configuration")
	l.does(providers.Start, "redefine done, start done, wait_ready done")
	keeps("the loss of its file while it was off")
	l.does(providers.Destroy, destroyed)
	l.isEmpty()
}

func TestDiskLost(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	l.does(providers.Stop, "stop graceful")
	l.remove(l.disk())
	l.sees("lab.dev off\nbroken: its disk is gone")
	l.does(providers.Start, "start failed (no_disk): start vm.dev: its disk is gone")
	l.does(providers.Destroy, "delete done")
	l.isEmpty()
}

func TestDiskOfAnother(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	theirs := `{"format":1,"id":"other","name":"lab.dev"}` + "\n"
	l.write(l.disk(), theirs)
	l.does(providers.Create, "define refused (name_taken): define vm.dev: a VM of the name lab.dev exists already (other), and it is not the one to be made")
	if got := l.read(l.disk()); got != theirs {
		t.Errorf("the disk of another has %q", got)
	}
}

// A step of its own releases a lock whose holder is gone, before the VM is started or
// deleted. A process that has got the holder's pid is left alone.
//
// row X03
func TestStaleLock(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(*lab) process.Identity{
		"gone": func(l *lab) process.Identity {
			id := l.start("--file", "elsewhere")
			l.end(l.t.Context(), id)
			return id
		},
		"reused": func(l *lab) process.Identity {
			id := l.start("--file", "elsewhere")
			id.StartTime--
			return id
		},
		"of an earlier boot": func(l *lab) process.Identity {
			id := l.start("--file", "elsewhere")
			id.BootID = "another"
			return id
		},
	} {
		for action, comes := range map[providers.Action]string{
			providers.Start: "unlock done, start done, wait_ready done", providers.Destroy: "unlock done, delete done",
		} {
			t.Run(name+" "+string(action), func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				l.does(providers.Create, created)
				l.does(providers.Stop, "stop graceful")
				id := gone(l)
				l.hold(id)
				f := l.vm().Findings
				if len(f) != 1 || f[0].Kind != providers.FindStaleLock || f[0].Claim != (providers.Claim{Kind: "the lock of root disk", Key: "lab.dev"}) {
					t.Errorf("found %+v", f)
				}
				l.does(action, comes)
				if now, err := (process.Host{}).Capture(t.Context(), id.PID); err == nil {
					l.end(t.Context(), now) // it lived on
				} else if name != "gone" {
					t.Errorf("whoever has the holder's pid: %v", err)
				}
			})
		}
	}
}

// A lock with a living or unknown holder is left alone, with the disk that it protects, and
// its holder is named.
//
// row X03
func TestHeldLock(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		lock func(*lab)
		sees string
	}{
		{
			"by a process", func(l *lab) { l.hold(l.start("--file", "elsewhere")) },
			"held_lock: DIR/disks/lab.dev.root.lock names a process that runs: pid N is PROGRAM, start time N\nPROCESS ",
		},
		{
			"by a process of another machine", func(l *lab) {
				id := l.start("--file", "elsewhere")
				id.Host = "elsewhere"
				l.hold(id)
			},
			"held_lock: it cannot be told whether the holder of DIR/disks/lab.dev.root.lock runs: recorded on host \"elsewhere\", this is HOST: look there\nPROCESS ",
		},
		{
			"by nobody knows whom", func(l *lab) {
				if err := os.Symlink("me", l.lock()); err != nil {
					l.t.Fatal(err)
				}
			},
			"held_lock: it cannot be told who holds its disk: read DIR/disks/lab.dev.root.lock: invalid character 'm' looking for beginning of value\nunknown ",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.does(providers.Create, created)
			l.does(providers.Stop, "stop graceful")
			tc.lock(l)
			before := l.traces()
			of, by, _ := strings.Cut(tc.sees, "\n")
			sees := by + "\nrunning: \nlab.dev off\n" + of
			here, err := os.Hostname()
			if err != nil {
				t.Fatal(err)
			}
			for from, to := range map[string]string{"PROGRAM": l.program(), "PROCESS": "sim.test", "HOST": `"` + here + `"`} {
				sees = strings.ReplaceAll(sees, from, to)
			}
			l.sees(sees)
			inv := l.observe()
			if holds := inv.Objects[0].Holds; len(holds) != 1 || holds[0] != inv.Objects[1].Findings[0].Claim {
				t.Errorf("the holder holds %+v", holds)
			}
			l.does(providers.Destroy, "delete refused (disk_locked): delete vm.dev: somebody else holds its disk")
			l.does(providers.Start, "start failed (not_started): start vm.dev: its process ended: the disk is locked: DIR/disks/lab.dev.root.lock")
			for _, trace := range before {
				if strings.Contains(trace, "/disks/") && !slices.Contains(l.traces(), trace) {
					t.Errorf("was changed: %s", trace)
				}
			}
			l.remove(l.lock())
			l.does(providers.Start, "start done, wait_ready done")
		})
	}
}

// A running VM holds its disk, and frees it when it ends, in whatever way.
func TestLockOfTheVM(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	if !l.exists(l.lock()) {
		t.Error("the disk of a VM that runs is not locked")
	}
	l.does(providers.Stop, "stop graceful")
	if l.exists(l.lock()) {
		t.Error("the disk of a VM that ended is locked")
	}
	l.apply(providers.Start)
	l.policy = policy(0.05)
	l.settings = l.house.settings(false, fault("stop", "ignore_request"))
	l.does(providers.Stop, "stop forced")
	if l.exists(l.lock()) {
		t.Error("the disk of a VM that was forced is locked")
	}
}

// The remains of a VM that is gone are removed before another is made in its place; if that
// fails, none is made.
func TestRemainsAreRemovedFirst(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.does(providers.Create, created)
	l.end(t.Context(), l.processOf())
	pidFile := l.pidFiles()[0]
	l.remove(l.vmPath("lab.dev"))
	l.remove(l.disk())
	if inv := l.observe(); len(inv.Objects) > 0 || len(inv.Unknown) > 0 {
		t.Errorf("of a VM that is gone there is %+v", inv)
	}
	l.generation = 2
	l.settings = l.house.settings(false, fault("clear", "fail", times(1)))
	l.does(providers.Create, "clear failed (fault): clear vm.dev: injected fault: fail")
	if l.exists(l.vmPath("lab.dev")) || !l.exists(pidFile) {
		t.Error("it was made, though what was left of it could not be removed")
	}
	l.does(providers.Create, "clear done, "+created)
	l.does(providers.Destroy, destroyed)
	l.isEmpty()
}

// A VM that is forgotten leaves nothing, nor does one whose file was lost and that is destroyed.
func TestLostLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(*testing.T, ...cty.Value) *lab{"a process": newLab, "with a host agent": newAgentLab} {
		for action, comes := range map[providers.Action]string{providers.Forget: "clear done", providers.Destroy: "unlock done, delete done"} {
			t.Run(name+" "+string(action), func(t *testing.T) {
				t.Parallel()
				l := of(t)
				l.does(providers.Create, created)
				for _, id := range l.processes(t.Context()) {
					l.end(t.Context(), id)
				}
				l.remove(l.vmPath("lab.dev"))
				if action == providers.Forget {
					l.remove(l.disk())
				}
				l.hostAgent = false // the settings may have changed since
				l.settings = l.house.settings(false)
				l.does(action, comes)
				l.isEmpty()
				if l.exists(l.dir) {
					t.Error("its folder is left")
				}
			})
		}
	}
}
