//go:build unix

package lima_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vmctl/providers"
	"vmctl/spec"
)

// clearGone runs one step on an instance that the record knows by another ID than the one of its name.
func (l *lab) clearGone(op string) providers.Result {
	l.t.Helper()
	w := providers.Work{Want: l.vm, Policy: l.policy, Generation: 1}
	w.Op, w.Address, w.Object, w.Name, w.Phase, w.Timeout = op, dev, "11111111-4f89-81d3-9a0c-0305e82c3301", "lab.dev", providers.PhaseRemove, time.Minute
	r, err := l.p.Do(l.t.Context(), w, func(providers.Progress) {})
	if err != nil {
		l.t.Fatalf("%s: %v", op, err)
	}
	return r
}

// The locks of a gone instance are freed when it is forgotten or destroyed. If another instance has its
// name by now, also one of which only processes are left, the locks are that one's.
//
// row L10
func TestLocksOfAnotherOfTheName(t *testing.T) {
	l := newLab(t)
	lock := filepath.Join(l.home, "_disks", "lab.cache", "in_use_by")
	held := func() bool {
		_, err := os.Readlink(lock)
		return err == nil
	}
	for _, op := range []string{"clear", "delete"} {
		if l.clearGone(op); !held() {
			t.Fatalf("%s of a gone instance freed the disk of the running one of its name", op)
		}
	}
	if err := os.Rename(l.inDev(""), filepath.Join(l.home, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	if l.clearGone("clear"); !held() {
		t.Fatal("clear freed the disk of a running instance whose folder is gone")
	}
	l.end(t.Context(), l.processesOf("lab.dev")...)
	if err := os.Mkdir(l.inDev(""), 0o700); err != nil {
		t.Fatal(err)
	}
	if l.clearGone("clear"); !held() {
		t.Fatal("clear freed the disk of an instance that somebody else is making")
	}
	if err := os.Remove(l.inDev("")); err != nil {
		t.Fatal(err)
	}
	r := l.clearGone("clear")
	if held() || !strings.Contains(strings.Join(r.Evidence, "\n"), "freed the disk lab.cache") {
		t.Errorf("the disk of an instance that is gone is held: %t; the step says %q", held(), r.Evidence)
	}
}

// An instance or a disk whose folder is a symbolic link is not deleted, and nothing of it is removed.
func TestDeleteFollowsNoLink(t *testing.T) {
	l := newLab(t)
	l.do(dev, providers.Stop)
	for _, c := range []struct {
		address spec.Address
		folder  string
	}{{dev, l.inDev("")}, {cache, filepath.Join(l.home, "_disks", "lab.cache")}} {
		folder, away := filepath.Clean(c.folder), filepath.Join(l.data, c.address.Name)
		if err := errors.Join(os.Rename(folder, away), os.Symlink(away, folder)); err != nil {
			t.Fatal(err)
		}
		before := strings.Join(l.traces(), "\n")
		if err := l.try(c.address, providers.Destroy); err == nil || !strings.Contains(err.Error(), folder+" is a symbolic link to "+away) {
			t.Errorf("%s: %v", c.address, err)
		}
		if now := strings.Join(l.traces(), "\n"); now != before {
			t.Errorf("%s: the files are\n%s\nand were\n%s", c.address, now, before)
		}
		if err := errors.Join(os.Remove(folder), os.Rename(away, folder)); err != nil {
			t.Fatal(err)
		}
		l.do(c.address, providers.Destroy)
		if _, err := os.Lstat(folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: its folder: %v", c.address, err)
		}
	}
}
