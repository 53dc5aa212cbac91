package busy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/busy"
	"vmctl/spec"
	"vmctl/state"
)

var (
	dev   = spec.Address{Kind: spec.VM, Name: "dev"}
	other = spec.Address{Kind: spec.VM, Name: "other"}
)

// who returns a Holder that is not this process, so that waiting for it makes sense.
func who(pid int) state.Holder {
	return state.Holder{PID: pid, Host: "ada", Command: fmt.Sprintf("command %d", pid), Since: time.Date(2026, 3, 4, 5, 6, pid, 0, time.UTC)}
}

func folder(t *testing.T) busy.Folder {
	t.Helper()
	return busy.Folder{Dir: filepath.Join(t.TempDir(), "busy")}
}

func enter(t *testing.T, f busy.Folder, addr spec.Address, pid int) (leave func()) {
	t.Helper()
	out, err := f.Enter(t.Context(), addr, who(pid))
	if err != nil {
		t.Fatal(err)
	}
	return ends(t, out)
}

func closeVM(t *testing.T, f busy.Folder, c busy.Closing) (open func()) {
	t.Helper()
	out, err := f.Close(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return ends(t, out)
}

func ends(t *testing.T, end func() error) func() {
	t.Helper()
	return func() {
		t.Helper()
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

// inside lists the commands inside the two VMs, as text.
func inside(t *testing.T, f busy.Folder) string {
	t.Helper()
	all, err := f.Inside(t.Context(), []spec.Address{dev, other})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, addr := range []spec.Address{dev, other} {
		if _, ok := all[addr]; !ok {
			continue
		}
		texts = append(texts, addr.String()+": "+commands(all[addr]))
	}
	return strings.Join(texts, "; ")
}

func commands(all []state.Holder) string {
	var texts []string
	for _, h := range all {
		texts = append(texts, h.Command)
	}
	return strings.Join(texts, ", ")
}

func TestThoseInsideAreNamedUntilTheyLeave(t *testing.T) {
	f := folder(t)
	if got := inside(t, f); got != "" {
		t.Errorf("before anybody came: %q", got)
	}
	second, first := enter(t, f, dev, 2), enter(t, f, dev, 1)
	if got, want := inside(t, f), "vm.dev: command 1, command 2"; got != want {
		t.Errorf("inside %q, want %q", got, want)
	}
	second()
	if got, want := inside(t, f), "vm.dev: command 1"; got != want {
		t.Errorf("inside %q, want %q", got, want)
	}
	first()
	if got := inside(t, f); got != "" {
		t.Errorf("after all have left: %q", got)
	}
}

func TestLookingWritesNothing(t *testing.T) {
	f := folder(t)
	inside(t, f)
	if _, err := os.Stat(f.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder of nobody: %v, want none", err)
	}
}

func TestOccupiedVMIsNotClosed(t *testing.T) {
	f := folder(t)
	defer enter(t, f, dev, 1)()
	defer enter(t, f, dev, 2)()
	_, err := f.Close(t.Context(), busy.Closing{Address: dev, By: who(9)})
	var occupied *busy.OccupiedError
	if !errors.As(err, &occupied) {
		t.Fatalf("error %v, want an *OccupiedError", err)
	}
	if d := cmp.Diff(&busy.OccupiedError{Address: dev, Holders: []state.Holder{who(1), who(2)}}, occupied); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
	want := "vm.dev is busy: command 1 (pid 1 on ada) since 2026-03-04 05:06:01 UTC, and 1 more"
	if err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	// The refused Close left the VM open.
	enter(t, f, dev, 3)()
	// Nobody is inside the other VM.
	closeVM(t, f, busy.Closing{Address: other, By: who(9)})()
}

func TestNobodyEntersAClosedVM(t *testing.T) {
	f := folder(t)
	for _, interrupt := range []bool{false, true} {
		open := closeVM(t, f, busy.Closing{Address: dev, By: who(9), Interrupt: interrupt})
		_, err := f.Enter(t.Context(), dev, who(1))
		var closed *busy.ClosedError
		if !errors.As(err, &closed) {
			t.Fatalf("error %v, want a *ClosedError", err)
		}
		want := "vm.dev is being taken down by command 9 (pid 9 on ada) since 2026-03-04 05:06:09 UTC"
		if err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
		if got := inside(t, f); got != "" {
			t.Errorf("one who was refused is inside: %s", got)
		}
		_, err = f.Close(t.Context(), busy.Closing{Address: dev, By: who(8)})
		if err == nil || err.Error() != want {
			t.Errorf("closed twice: error %v, want %q", err, want)
		}
		enter(t, f, other, 1)()
		open()
		enter(t, f, dev, 1)()
	}
}

func TestInterruptingWaitsForNobody(t *testing.T) {
	f := folder(t)
	defer enter(t, f, dev, 1)()
	open := closeVM(t, f, busy.Closing{Address: dev, By: who(9), Interrupt: true, Wait: time.Hour, Waiting: func([]state.Holder) {
		t.Error("it waits")
	}})
	open()
}

// While Close waits, nobody else can enter, and Waiting is called again whenever other
// processes are inside.
func TestWaitEndsWithTheLastToLeave(t *testing.T) {
	f := folder(t)
	first, second := enter(t, f, dev, 1), enter(t, f, dev, 2)
	var told []string
	open := closeVM(t, f, busy.Closing{Address: dev, By: who(9), Wait: time.Hour, Waiting: func(all []state.Holder) {
		told = append(told, commands(all))
		if len(all) == 2 {
			var closed *busy.ClosedError
			if _, err := f.Enter(t.Context(), dev, who(3)); !errors.As(err, &closed) {
				t.Errorf("one who comes during the wait: error %v, want a *ClosedError", err)
			}
			first()
			return
		}
		second()
	}})
	if d := cmp.Diff([]string{"command 1, command 2", "command 2"}, told); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
	open()
}

func TestWaitHasADeadline(t *testing.T) {
	f := folder(t)
	defer enter(t, f, dev, 1)()
	_, err := f.Close(t.Context(), busy.Closing{Address: dev, By: who(9), Wait: time.Second})
	want := "vm.dev is still busy after 1s: command 1 (pid 1 on ada) since 2026-03-04 05:06:01 UTC"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	enter(t, f, dev, 2)()
}

func TestEndedContextEndsTheWait(t *testing.T) {
	f := folder(t)
	defer enter(t, f, dev, 1)()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := f.Close(ctx, busy.Closing{Address: dev, By: who(9), Wait: time.Hour, Waiting: func([]state.Holder) { cancel() }})
	if want := "wait for those inside vm.dev: context canceled"; err == nil || err.Error() != want || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %q", err, want)
	}
	enter(t, f, dev, 2)()
}

// Every address has a lock of its own with a short and plain name, whatever its key
// holds.
func TestNamesAreShortAndDifferent(t *testing.T) {
	f := folder(t)
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"a", "A", "a/b", "../a", "a.door", "a\x00", "a.seat-0", strings.Repeat("x", 5000)}))
		addr := func(name string) spec.Address {
			return spec.Address{Kind: spec.VM, Name: rapid.SampledFrom([]string{"dev", "Dev", "d-v", strings.Repeat("y", 300)}).Draw(t, name), Key: key.Draw(t, name+" key")}
		}
		one, two := addr("one"), addr("two")
		leave, err := f.Enter(context.Background(), one, who(1))
		if err != nil {
			t.Fatalf("enter %q: %v", one, err)
		}
		found, err := f.Inside(context.Background(), []spec.Address{one, two})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(found[two]); got > 0 != (one == two) {
			t.Errorf("%d inside %q while one is inside %q", got, two, one)
		}
		if err := leave(); err != nil {
			t.Fatal(err)
		}
	})
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if len(e.Name()) > 80 {
			t.Errorf("the name %s has %d bytes, want at most 80", e.Name(), len(e.Name()))
		}
	}
	if parent, err := os.ReadDir(filepath.Dir(f.Dir)); err != nil || len(parent) != 1 {
		t.Errorf("beside the folder: %v, %v", parent, err)
	}
}

func TestErrorsSayWhatWasTried(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := busy.Folder{Dir: filepath.Join(path, "busy")}
	want := "make the folder of busy VMs: mkdir " + path + ": not a directory"
	if _, err := f.Enter(t.Context(), dev, who(1)); err == nil || err.Error() != want {
		t.Errorf("enter: error %v, want %q", err, want)
	}
	if _, err := f.Close(t.Context(), busy.Closing{Address: dev, By: who(1)}); err == nil || err.Error() != want {
		t.Errorf("close: error %v, want %q", err, want)
	}
}

// What the dead left goes, and who lives is not disturbed.
func TestTidy(t *testing.T) {
	f := folder(t)
	if err := f.Tidy(t.Context()); err != nil {
		t.Errorf("nobody was ever inside: %v", err)
	}
	leave := enter(t, f, dev, 1)
	open := closeVM(t, f, busy.Closing{Address: other, By: who(2)})
	for _, left := range []string{"vm.gone", "vm.past", "vm.gone.owner", "vm.gone.door.owner", "vm.past.seat-0.owner"} {
		if err := os.WriteFile(filepath.Join(f.Dir, left), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := records(t, f)
	if err := f.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(before, func(name string) bool {
		return slices.Contains([]string{"vm.gone.owner", "vm.gone.door.owner", "vm.past.seat-0.owner"}, name)
	})
	if d := cmp.Diff(want, records(t, f)); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
	inside, err := f.Inside(t.Context(), []spec.Address{dev, other})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[spec.Address][]state.Holder{dev: {who(1)}}, inside); d != "" {
		t.Errorf("inside (-want +got):\n%s", d)
	}
	var closed *busy.ClosedError
	if _, err := f.Enter(t.Context(), other, who(3)); !errors.As(err, &closed) || closed.By != who(2) {
		t.Errorf("enter what is closed: %v", err)
	}
	leave()
	open()
}

// records lists the records beside the locks.
func records(t *testing.T, f busy.Folder) []string {
	t.Helper()
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if match, err := filepath.Match("*.owner*", e.Name()); err != nil || match {
			all = append(all, e.Name())
		}
	}
	return all
}
