package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"vmctl/providers"
	"vmctl/providers/workspace"
	"vmctl/spec"
)

// kept is the file of a workspace that is kept beside its record.
func (w *work) kept(name string) string { return filepath.Join(filepath.Dir(w.mark()), name) }

// whole fails unless the workspace is there with all of its files.
func (w *work) whole(t *testing.T) {
	t.Helper()
	if o := w.see(t)[w.id]; len(o.Findings) > 0 || len(o.Dirty) > 0 {
		t.Errorf("findings %v, dirt %v", o.Findings, o.Dirty)
	}
	for name, want := range map[string]string{"a": "one\n", "d/x": "x\n"} {
		if got := read(t, filepath.Join(w.path, name)); got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}

// half fails unless the workspace is told to be half there.
func (w *work) half(t *testing.T) {
	t.Helper()
	if f := finding(w.see(t)[w.id], providers.FindPartial); f == nil {
		t.Fatal("nobody sees that it is half there")
	}
}

// A folder whose repair was cut short is no whole one, and what somebody writes there meanwhile stays.
func TestARepairIsCutShort(t *testing.T) {
	w := newBench(t, inVM).workspace()
	w.create(t)
	must(t, os.RemoveAll(w.path))
	w.refuse = "checkout-index"
	if err := w.do("check_out", providers.PhaseMake); err == nil {
		t.Fatal("the repair was not cut short")
	}
	w.refuse = ""
	if _, err := os.Stat(w.path); err != nil {
		t.Fatal(err)
	}
	w.half(t)
	must(t, os.WriteFile(filepath.Join(w.path, "run"), []byte("mine\n"), 0o600))
	w.create(t)
	if got := read(t, filepath.Join(w.path, "run")); got != "mine\n" {
		t.Errorf("the file has %q", got)
	}
	w.git(t, w.path, "checkout", "-q", "--", "run")
	w.whole(t)
}

// A removal that was cut short, of a workspace that is wanted again, is taken back as far as it came.
func TestARemovalIsTakenBack(t *testing.T) {
	for name, cut := range map[string]func(*testing.T, *work){
		"at once":             func(*testing.T, *work) {},
		"some files are gone": func(t *testing.T, w *work) { must(t, os.RemoveAll(filepath.Join(w.path, "d"))) },
		"its folder is gone":  func(t *testing.T, w *work) { must(t, os.RemoveAll(w.path)) },
		"its branches are gone": func(t *testing.T, w *work) {
			must(t, os.RemoveAll(w.path))
			must(t, os.Rename(w.kept("git"), w.kept("gone")))
		},
		"nearly all is gone": func(t *testing.T, w *work) {
			must(t, os.RemoveAll(w.path))
			must(t, os.RemoveAll(w.kept("git")))
			must(t, os.Remove(w.kept("made")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBench(t, inVM).workspace()
			w.create(t)
			must(t, os.WriteFile(w.kept("ends"), nil, 0o600))
			cut(t, w)
			w.half(t)
			w.create(t)
			w.whole(t)
			must(t, w.do("remove", providers.PhaseRemove))
			if _, there := w.see(t)[w.id]; there {
				t.Error("it is still there")
			}
		})
	}
}

// A guest's save that comes into a worktree of this host moves its branch alone: no other branch, no tag, no stash of this host.
func TestASaveOfAGuestMovesOneBranch(t *testing.T) {
	w := newBench(t, inVM).workspace()
	w.create(t)
	w.git(t, w.path, "tag", "theirs")
	w.git(t, w.path, "checkout", "-q", "-b", "main")
	w.git(t, w.path, "commit", "-q", "--allow-empty", "-m", "theirs")
	w.git(t, w.path, "checkout", "-q", w.branch)
	w.git(t, w.path, "commit", "-q", "--allow-empty", "-m", "own")
	own := w.git(t, w.path, "rev-parse", "HEAD")
	must(t, os.WriteFile(filepath.Join(w.path, "a"), []byte("stashed\n"), 0o600))
	w.git(t, w.path, "stash", "push", "-q")
	_, err := w.saver().Save(t.Context(), w.id, workspace.SaveOptions{})
	must(t, err)
	w.drop(t, w)
	main := w.git(t, w.repo, "rev-parse", "main")

	w.place, w.home = spec.ThisHost, w.here
	w.open(t)
	w.path = filepath.Join(w.home, "ws")
	w.create(t)
	_, err = w.saver().Restore(t.Context(), w.id, workspace.RestoreOptions{})
	must(t, err)
	if got := w.git(t, w.repo, "rev-parse", w.branch); got != own {
		t.Errorf("its branch is at %s, want %s", got, own)
	}
	if got := w.git(t, w.repo, "rev-parse", "main"); got != main {
		t.Errorf("main moved from %s to %s", main, got)
	}
	if got := w.git(t, w.repo, "tag") + w.git(t, w.repo, "stash", "list"); got != "" {
		t.Errorf("this host has %q", got)
	}
}
