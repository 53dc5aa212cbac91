//go:build unix

package lima_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/providertest"
)

// What stops or removes an instance leaves the locks of disks that another one holds, whatever its own definition says.
//
// Trap 3: instance.StopForcibly of Lima v2.2.0, which its Delete calls, too, removes the locks of all additional disks
// in the definition, whoever holds them, also of an instance that is stopped.
func TestLockOfAnotherInstance(t *testing.T) {
	for _, action := range []providers.Action{providers.Stop, providers.Update, providers.Destroy} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, set("running", cty.False))
			if err := l.carryOut(l.ofTwo(providers.Create)); err != nil {
				t.Fatal(err)
			}
			if err := l.start(t.Context(), l.ofTwo(providers.Start), quiet); err != nil {
				t.Fatal(err)
			}
			// The definition of both names the disk, and a run of the first one has left its files.
			l.write("2147483646", "lab.dev", "ha.pid")
			l.do(dev, action)
			target, err := os.Readlink(filepath.Join(l.home, "_disks", "lab.cache", "in_use_by"))
			if err != nil || filepath.Base(target) != "lab.two" {
				t.Errorf("afterwards the lock of the running instance is of %q, %v", target, err)
			}
			if n := len(l.processesOf("lab.two")); n != 2 {
				t.Errorf("%d processes run the other instance", n)
			}
		})
	}
}

// The lock of a disk is judged by its holder, and only a holder that is gone or off loses it: by a step of the plan, in
// a phase before anything that needs the disk. Nothing is done to a disk of a holder that nobody knows.
//
// Trap 9: limactl disk delete of Lima v2.2.0 refuses any disk with a lock, and limactl disk unlock is a command of its
// own, which frees a disk, too, whose instance cannot be inspected.
//
// row L11, of Lima's locks
func TestVerdictsOnLocks(t *testing.T) {
	elsewhere := t.TempDir()
	for _, test := range []struct {
		name   string
		holder func(l *lab) string
		finds  providers.FindingKind // of the disk; "": nothing
		frees  bool
	}{
		{"nobody", func(*lab) string { return "" }, "", false},
		{"an instance that is gone", func(l *lab) string { return filepath.Join(l.home, "gone") }, providers.FindStaleLock, true},
		{"an instance that is off", func(l *lab) string { return l.inDev("") }, providers.FindStaleLock, true},
		{"a folder that is gone", func(*lab) string { return "/nowhere/at/all" }, providers.FindStaleLock, true},
		{"an instance that runs", func(l *lab) string {
			if err := l.start(l.t.Context(), l.ofTwo(providers.Start), quiet); err != nil {
				l.t.Fatal(err)
			}
			return ""
		}, "", false},
		{"an instance that cannot be read", func(l *lab) string {
			l.write("{", "lab.two", "vmctl.json")
			return filepath.Join(l.home, "lab.two")
		}, providers.FindHeldLock, false},
		{"an instance of another home", func(*lab) string { return elsewhere }, providers.FindHeldLock, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, set("running", cty.False))
			if err := l.carryOut(l.ofTwo(providers.Create)); err != nil {
				t.Fatal(err)
			}
			lock := filepath.Join(l.home, "_disks", "lab.cache", "in_use_by")
			if target := test.holder(l); target != "" {
				if err := os.Symlink(target, lock); err != nil {
					t.Fatal(err)
				}
			}
			before, _ := os.Readlink(lock) //nolint:errcheck // "" if there is none
			o := l.object(cacheID)
			found := providers.FindingKind("")
			if len(o.Findings) > 0 {
				found = o.Findings[0].Kind
			}
			if found != test.finds {
				t.Errorf("findings %s, want %q", findings(o), test.finds)
			}
			for _, action := range []providers.Action{providers.Update, providers.Destroy} {
				steps, err := l.p.Steps(l.change(cache, action, o))
				frees := len(steps) > 0 && steps[0].Op == "unlock" && steps[0].Phase == providers.PhaseRelease
				if frees != test.frees {
					t.Errorf("%s: steps %+v, %v; it frees the disk: %t", action, steps, err, frees)
				}
				if refused := test.finds == providers.FindHeldLock && action == providers.Destroy; refused != (err != nil) {
					t.Errorf("%s: %v", action, err)
				}
			}
			// Trap 11: limactl disk resize of Lima v2.2.0 refuses a disk of a Running holder when it is run, and takes one
			// that is Broken, or that it cannot inspect, for none. vmctl refuses the plan.
			grow := l.change(cache, providers.Update, o)
			all := grow.Want.AsValueMap()
			all["size"] = cty.NumberIntVal(64 << 20)
			grow.Want, grow.Edits = cty.ObjectVal(all), []providers.Edit{{Path: "size", After: all["size"]}}
			if _, err := l.p.Steps(grow); (test.finds == providers.FindHeldLock) != (err != nil) {
				t.Errorf("a larger one: %v", err)
			}
			l.do(cache, providers.Update)
			after, err := os.Readlink(lock)
			if test.frees != (before != "" && errors.Is(err, fs.ErrNotExist)) || !test.frees && after != before {
				t.Errorf("after an update the lock of %q is of %q, %v", before, after, err)
			}
			if err := l.start(t.Context(), l.change(dev, providers.Start, l.object(devID)), quiet); (err == nil) != (test.frees || before == "") {
				t.Errorf("a start of another instance with it: %v", err)
			}
		})
	}
}

// Keys that are made by two at once are one pair, which lets vmctl into both instances. No program is asked for them,
// and their folder is made for their user alone.
//
// row L38, of a folder that is missing
// row L39, of Lima's keys
// row L40, of Lima's keys
func TestKeysMadeAtOnce(t *testing.T) {
	h := newHouse(t)
	t.Setenv("PATH", t.TempDir()) // without ssh-keygen
	typ := h.limaType()
	l := &lab{house: h, vm: want(), policy: providertest.Waits(0)}
	errs := make(chan error, 2)
	for i, a := range []struct {
		address, name string
		id            providers.ID
	}{{"dev", "lab.dev", devID}, {"two", "lab.two", twoID}} {
		p, err := typ.Open(t.Context(), h.settings())
		if err != nil {
			t.Fatal(err)
		}
		c := l.change(dev, providers.Create, nil)
		c.Address.Name, c.Name, c.ID, c.Uses = a.address, a.name, a.id, nil
		steps, err := p.Steps(c)
		if err != nil {
			t.Fatal(i, err)
		}
		go func() {
			_, err := p.Do(t.Context(), providers.Work{Step: steps[0], Want: c.Want, Policy: l.policy, Generation: 1}, quiet)
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(filepath.Join(h.home, "_config")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the keys: %v, %v", info.Mode(), err)
	}
	public := strings.Fields(h.read("_config", "user.pub"))
	for _, name := range []string{"lab.dev", "lab.two"} {
		if text := h.read(name, "lima.yaml"); !strings.Contains(text, public[1]) {
			t.Errorf("%s does not let the key %s in", name, public[1])
		}
	}
}
