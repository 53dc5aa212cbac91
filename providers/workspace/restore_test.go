package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/providers/workspace"
	"vmctl/spec"
)

// What came back is compared with the save: a file system or a program that spoils something is told.
func TestWhatComesBackIsCompared(t *testing.T) {
	const stashes = "while IFS=' ' read -r sha message;"
	for name, test := range map[string]struct{ program, why string }{
		"a file":       {"printf x >>a\n", "a"},
		"a mode":       {"chmod a-x run\n", "run"},
		"a file more":  {"echo more >more\n", "more"},
		"the index":    {"real rm -q --cached d/x\n", "other files are staged"},
		"a commit":     {"real update-ref \"$headref\" HEAD~1\n", "another commit"},
		"the branch":   {"real symbolic-ref HEAD refs/heads/other; real update-ref HEAD \"$head\"\n", "another branch is checked out"},
		"nothing else": {"", ""},
	} {
		for place, at := range map[string]spec.Address{"vm": inVM, "host": spec.ThisHost} {
			t.Run(name+" "+place, func(t *testing.T) {
				w := newBench(t, at).workspace()
				w.create(t)
				w.git(t, w.path, "commit", "-q", "--allow-empty", "-m", "two")
				must(t, os.WriteFile(filepath.Join(w.path, "new"), []byte("new\n"), 0o600))
				_, err := w.saver().Save(t.Context(), w.id, workspace.SaveOptions{})
				must(t, err)
				w.drop(t, w)
				w.create(t)
				w.rewrite = []string{stashes, test.program + stashes}
				_, err = w.saver().Restore(t.Context(), w.id, "")
				var refused *workspace.RefusedError
				switch {
				case test.why == "":
					must(t, err)
				case !errors.As(err, &refused) || !strings.Contains(refused.Why, "it is not as it was saved in ") || !strings.Contains(refused.Why, test.why):
					t.Errorf("restore: %v", err)
				}
			})
		}
	}
}

// The files that come back can be read by those who could read them before.
func TestWhatComesBackCanBeRead(t *testing.T) {
	w := newBench(t, inVM).workspace()
	w.create(t)
	must(t, os.WriteFile(filepath.Join(w.path, "new"), []byte("new\n"), 0o644))
	_, err := w.saver().Save(t.Context(), w.id, workspace.SaveOptions{})
	must(t, err)
	w.drop(t, w)
	w.create(t)
	_, err = w.saver().Restore(t.Context(), w.id, "")
	must(t, err)
	info, err := os.Stat(filepath.Join(w.path, "new"))
	must(t, err)
	if info.Mode().Perm() != 0o644 {
		t.Errorf("its mode is %s", info.Mode())
	}
}
