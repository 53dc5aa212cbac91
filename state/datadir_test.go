package state_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"vmctl/state"
)

// A data directory keeps its ID where it is and where it is moved to, and a copy has
// another one.
func TestDataDirID(t *testing.T) {
	root := t.TempDir()
	at := func(name string) state.Folder { return state.Folder{Dir: filepath.Join(root, name)} }
	has := func(name, want string) {
		t.Helper()
		got, err := at(name).DataDirID()
		if err != nil || got != want {
			t.Errorf("%s has the ID %q, want %q (%v)", name, got, want, err)
		}
	}
	has("one", "")
	if err := os.Mkdir(at("one").Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	has("one", "")
	setID := func(name, id string) {
		t.Helper()
		if err := at(name).SetDataDirID(id); err != nil {
			t.Fatal(err)
		}
	}
	setID("one", "first")
	has("one", "first")
	setID("one", "another")
	has("one", "first")

	if out, err := exec.Command("cp", "-a", at("one").Dir, at("copy").Dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	has("copy", "")
	setID("copy", "second")
	has("copy", "second")
	has("one", "first")

	if err := os.Rename(at("one").Dir, at("moved").Dir); err != nil {
		t.Fatal(err)
	}
	has("moved", "first")

	if err := os.WriteFile(filepath.Join(at("copy").Dir, "seat.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	has("copy", "")
}
