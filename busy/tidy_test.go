package busy_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/busy"
	"vmctl/spec"
	"vmctl/state"
)

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
