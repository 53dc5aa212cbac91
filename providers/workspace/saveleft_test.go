package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"vmctl/providers/workspace"
	"vmctl/spec"
)

// A save that was killed leaves a folder: the next save removes it, but not that of a save that runs.
func TestTheFolderOfAKilledSaveIsRemoved(t *testing.T) {
	w := newBench(t, spec.Address{Kind: spec.VM, Name: "dev"}).workspace()
	w.create(t)
	own := filepath.Join(w.home, ".vmctl", "workspaces", string(w.id))
	runs := filepath.Join(own, fmt.Sprintf("save.%d.abc", os.Getpid()))
	for _, dir := range []string{filepath.Join(own, "save.abcdef"), filepath.Join(own, "save.999999999.abc"), runs} {
		must(t, os.MkdirAll(filepath.Join(dir, "git"), 0o700))
	}
	must(t, os.WriteFile(filepath.Join(w.path, "new"), nil, 0o600))
	_, err := w.saver().Save(t.Context(), w.id, workspace.SaveOptions{})
	must(t, err)
	left, err := filepath.Glob(filepath.Join(own, "save.*"))
	must(t, err)
	if len(left) != 1 || left[0] != runs {
		t.Errorf("these folders are left: %q, want %q alone", left, runs)
	}
}
