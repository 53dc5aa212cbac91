package state_test

import (
	"os"
	"path/filepath"
	"testing"

	"vmctl/state"
)

// Room is taken once, and given back once.
func TestReserve(t *testing.T) {
	f := state.Folder{Dir: t.TempDir()}
	spend := func(want bool) {
		t.Helper()
		if got, err := f.FreeReserve(); got != want || err != nil {
			t.Errorf("room was given back: %t, want %t (%v)", got, want, err)
		}
	}
	spend(false)
	for range 2 {
		if err := f.Reserve(); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(f.Dir, "reserve"))
	if err != nil || info.Size() < 256<<10 {
		t.Fatalf("%v, %v", info, err)
	}
	spend(true)
	spend(false)
	if left, err := os.ReadDir(f.Dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
