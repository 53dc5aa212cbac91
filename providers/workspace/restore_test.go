package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/internal/real"
	"vmctl/providers/workspace"
	"vmctl/spec"
)

// What came back is compared with the save: a file system or a program that spoils something is told.
func TestWhatComesBackIsCompared(t *testing.T) {
	real.Long(t)
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
			if at == spec.ThisHost && name != "a file" && name != "nothing else" {
				continue // it is the same program
			}
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
				_, err = w.saver().Restore(t.Context(), w.id, workspace.RestoreOptions{})
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

// The newest save is one of the same branch, where another workspace has had an earlier address since.
func TestTheNewestSaveIsOfTheBranch(t *testing.T) {
	other := newBench(t, inVM).workspace()
	w := other.workspace()
	for _, one := range []*work{other, w} {
		one.create(t)
		must(t, os.WriteFile(filepath.Join(one.path, "new"), []byte(one.branch), 0o600))
		_, err := one.saver().Save(t.Context(), one.id, workspace.SaveOptions{})
		must(t, err)
	}
	must(t, os.Remove(filepath.Join(w.path, "new")))
	_, err := w.saver().Restore(t.Context(), w.id, workspace.RestoreOptions{Was: []spec.Address{other.address()}})
	must(t, err)
	if got := read(t, filepath.Join(w.path, "new")); got != w.branch {
		t.Errorf("the file has %q", got)
	}
}

// Files of the branch that come back can be read by others, as after a checkout; files that git does not know may be meant for
// one user alone.
func TestWhatComesBackCanBeRead(t *testing.T) {
	w := newBench(t, inVM).workspace()
	w.create(t)
	must(t, os.WriteFile(filepath.Join(w.path, "new"), []byte("new\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(w.path, "a"), []byte("other\n"), 0o600))
	_, err := w.saver().Save(t.Context(), w.id, workspace.SaveOptions{})
	must(t, err)
	w.drop(t, w)
	w.create(t)
	_, err = w.saver().Restore(t.Context(), w.id, workspace.RestoreOptions{})
	must(t, err)
	for name, want := range map[string]os.FileMode{"a": 0o755, "new": 0o600} {
		info, err := os.Stat(filepath.Join(w.path, name))
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("the mode of %s is %s, want %s", name, info.Mode(), want)
		}
	}
}

// Files with marks that hide their changes are not clean unless they could be compared.
func TestHiddenChangesThatCannotBeRead(t *testing.T) {
	w := newBench(t, inVM).workspace()
	w.create(t)
	w.git(t, w.path, "update-index", "--assume-unchanged", "a")
	if o := w.see(t)[w.id]; len(o.Dirty) > 0 || len(o.Unreadable) > 0 {
		t.Fatalf("dirt %v, unreadable %v", o.Dirty, o.Unreadable)
	}
	for _, text := range []string{"xargs -0 ", "cp -p ", "git \"$@\" ls-files -v", "git \"$@\" ls-files -s", "git \"$@\" update-index"} {
		w.rewrite = []string{text, "false "}
		if o := w.see(t)[w.id]; o.Unreadable["dirty"] == "" {
			t.Errorf("%q fails, and it is clean", text)
		}
	}
}
