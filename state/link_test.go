package state_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/state"
)

// A state that is kept elsewhere, behind a symbolic link, stays there: who links it
// has it backed up, or shared.
func TestALinkedStateStaysWhereItIs(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	r := record("dev", 1)
	appendTo(t, j, state.Entry{Run: "r", Kind: state.Done, Address: dev, Put: &r})
	closeIt(t, j)
	elsewhere := t.TempDir()
	for _, name := range []string{"state.json", "state.json.backup"} {
		at, kept := filepath.Join(f.Dir, name), filepath.Join(elsewhere, name)
		if err := os.Rename(at, kept); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(kept, at); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(elsewhere, "."+name+".77.tmp"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := read(t, f).Serial
	j = open(t, f)
	r = record("dev", 2)
	appendTo(t, j, state.Entry{Run: "r", Kind: state.Done, Address: dev, Put: &r})
	closeIt(t, j)
	for _, name := range []string{"state.json", "state.json.backup"} {
		if info, err := os.Lstat(filepath.Join(f.Dir, name)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v, %v", name, info.Mode(), err)
		}
	}
	if s := read(t, f); s.Serial != before+1 || s.Records[dev].Generation != r.Generation {
		t.Errorf("behind the link: serial %d, generation %d", s.Serial, s.Records[dev].Generation)
	}
	entries, err := os.ReadDir(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if d := cmp.Diff([]string{"state.json", "state.json.backup"}, names); d != "" {
		t.Errorf("beside what the links lead to (-want +got):\n%s", d)
	}
}

func TestALinkToNothingIsRefused(t *testing.T) {
	f := folder(t)
	path := filepath.Join(f.Dir, "state.json.backup")
	if err := os.Symlink(filepath.Join(f.Dir, "gone"), path); err != nil {
		t.Fatal(err)
	}
	_, err := f.Open(t.Context(), state.Owner{Command: "vmctl apply"})
	want := "follow the symbolic link " + path + ": it leads to nothing; nothing was changed: remove it, or bring back what it led to"
	if d := cmp.Diff(want, fmt.Sprint(err)); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
}
