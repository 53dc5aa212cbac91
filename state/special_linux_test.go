package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"vmctl/state"
)

// What is no file is refused at once, with what moves it aside; a pipe would
// make whoever opens it wait for ever.
func TestASpecialFileIsNoState(t *testing.T) {
	for _, name := range []string{"state.json", "journal-0.ndjson"} {
		f := folder(t)
		path := filepath.Join(f.Dir, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		err := refused(t, f)
		var corrupt *state.CorruptError
		if !errors.As(err, &corrupt) {
			t.Fatalf("%s: error %v, want a *CorruptError", name, err)
		}
		for _, want := range []string{path + " is corrupt: it is no regular file; nothing was changed", "mv " + path + " " + path + ".corrupt"} {
			if !strings.Contains(told(err), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		}
		if _, err := f.Repair(t.Context(), state.Owner{Command: "vmctl state repair"}); err == nil {
			t.Errorf("%s: repaired", name)
		}
		if err := os.Rename(path, path+".corrupt"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Read(t.Context()); err != nil {
			t.Errorf("after what the error says: %v", err)
		}
	}
}
