//go:build unix

package lima_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

var two = spec.Address{Kind: spec.VM, Name: "two"}

const twoID = providers.ID("3f2504e0-4f89-81d3-9a0c-0305e82c3303")

// ofTwo returns a change of a second instance of the lab, which has the same disk.
func (l *lab) ofTwo(action providers.Action) providers.Change {
	l.t.Helper()
	c := l.change(dev, action, l.object(twoID))
	c.Address, c.Name, c.ID = two, "lab.two", twoID
	return c
}

// start carries out the start of an instance, without the wait for its guest.
func (l *lab) start(ctx context.Context, c providers.Change, log providers.Log) error {
	l.t.Helper()
	steps, err := l.p.Steps(c)
	if err != nil {
		return err
	}
	for _, s := range steps {
		if s.Op != "start" {
			continue
		}
		_, err := l.p.Do(ctx, providers.Work{Step: s, Expect: c.Object.Fingerprint, Prior: c.Prior, Want: c.Want, Policy: l.policy, Generation: 1, Uses: c.Uses}, log)
		return err
	}
	return errors.New("no step starts it")
}

func quiet(providers.Progress) {}

// Of two instances that are started at once with one disk, one gets it. The other one does not start, and what the
// first one has stays as it is.
//
// row L12, of Lima's locks
func TestOneDiskTwoStarts(t *testing.T) {
	l := newLab(t, set("running", cty.False))
	if err := l.carryOut(l.ofTwo(providers.Create)); err != nil {
		t.Fatal(err)
	}
	changes := []providers.Change{l.change(dev, providers.Start, l.object(devID)), l.ofTwo(providers.Start)}
	errs := make([]error, len(changes))
	var together sync.WaitGroup
	for i, c := range changes {
		together.Go(func() { errs[i] = l.start(t.Context(), c, quiet) })
	}
	together.Wait()
	winner, loser := "lab.dev", "lab.two"
	if errs[0] != nil {
		winner, loser = loser, winner
	}
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("started: %v, %v", errs[0], errs[1])
	}
	target, err := os.Readlink(filepath.Join(l.home, "_disks", "lab.cache", "in_use_by"))
	if err != nil || filepath.Base(target) != winner {
		t.Errorf("%s has won, and the lock is of %s, %v", winner, target, err)
	}
	if n := len(l.processesOf(winner)); n != 2 {
		t.Errorf("%s, which has won, has %d processes", winner, n)
	}
	if n := len(l.processesOf(loser)); n != 0 {
		t.Errorf("%s, which has lost, has %d processes", loser, n)
	}
}

// awaitFile returns once there is a file, or ctx has ended.
func awaitFile(ctx context.Context, path string) {
	for ctx.Err() == nil {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// A start that is told to end while its host agent starts no QEMU ends that one, and leaves no file of a run, no lock
// and no record of it.
//
// row L27, of Lima's VMs
func TestStartInterrupted(t *testing.T) {
	stuck := set("params", cty.MapVal(map[string]cty.Value{"stuck": cty.StringVal("yes")}))
	l := newLab(t, set("running", cty.False), stuck)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		awaitFile(ctx, l.inDev("ha.pid"))
		cancel()
	}()
	if err := l.start(ctx, l.change(dev, providers.Start, l.object(devID)), quiet); err == nil {
		t.Fatal("started")
	}
	if n := len(l.processesOf("lab.dev")); n != 0 {
		t.Errorf("it left %d processes", n)
	}
	for _, file := range []string{"lab.dev/ha.pid", "lab.dev/qemu.pid", "lab.dev/vmctl.run.json", "_disks/lab.cache/in_use_by"} {
		if _, err := os.Lstat(filepath.Join(l.home, file)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it left %s: %v", file, err)
		}
	}
	if o := l.object(devID); o.State != providers.StateOff || len(o.Findings) > 0 {
		t.Errorf("afterwards it is %s, %s", o.State, findings(o))
	}
}

// An instance runs on when the context of the start that brought it up has ended.
//
// Trap 2: Lima v2.2.0 starts the host agent by exec.CommandContext with the context of instance.StartWithPaths: who
// cancels that later kills the host agent, and QEMU with it is without one. vmctl-lima starts it without a context, in
// a session of its own, and ends; a test of vmctl-lima has the real host agent.
func TestStartOutlivesItsContext(t *testing.T) {
	l := newLab(t, set("running", cty.False))
	ctx, cancel := context.WithCancel(t.Context())
	if err := l.start(ctx, l.change(dev, providers.Start, l.object(devID)), quiet); err != nil {
		t.Fatal(err)
	}
	before := l.processesOf("lab.dev")
	cancel()
	if o := l.object(devID); o.State != providers.StateRunning || len(before) != 2 || len(l.processesOf("lab.dev")) != 2 {
		t.Errorf("it is %s, and has %d processes of %d", o.State, len(l.processesOf("lab.dev")), len(before))
	}
}

// A wait goes on while the instance cannot be read for a moment.
//
// row L57, of Lima's VMs
func TestWaitReadsAgain(t *testing.T) {
	slow := set("params", cty.MapVal(map[string]cty.Value{"slow": cty.StringVal("yes")}))
	l := newLab(t, set("running", cty.False), slow)
	c := l.change(dev, providers.Start, l.object(devID))
	if err := l.start(t.Context(), c, quiet); err != nil {
		t.Fatal(err)
	}
	mark := l.read("lab.dev", "vmctl.json")
	failed := 0
	w := providers.Work{Expect: l.object(devID).Fingerprint, Prior: l.vm, Want: l.vm, Policy: l.policy, Generation: 1}
	w.Op, w.Address, w.Object, w.Name, w.Phase, w.Timeout = "wait_ssh", dev, devID, "lab.dev", providers.PhaseReady, time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	said := make(chan string)
	go func() {
		_, err := l.p.Do(ctx, w, func(p providers.Progress) {
			select {
			case said <- p.Text:
			case <-ctx.Done():
			}
		})
		done <- err
	}()
	for {
		select {
		case text := <-said:
			switch {
			case strings.HasPrefix(text, "it lets vmctl in, and its host agent has not reported it running"):
				if failed == 0 {
					l.write("{", "lab.dev", "vmctl.json")
				}
			case strings.HasPrefix(text, "it cannot be read, and is read again: "):
				if failed++; failed == 1 {
					l.write("[]", "lab.dev", "vmctl.json") // which is another reason
				} else {
					l.write(mark, "lab.dev", "vmctl.json")
					l.write("", "lab.dev", "booted")
				}
			}
		case err := <-done:
			if err != nil || failed < 2 {
				t.Errorf("after %d failed looks: %v", failed, err)
			}
			return
		}
	}
}
