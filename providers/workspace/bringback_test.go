package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/real"
	"vmctl/providers"
	"vmctl/spec"
)

// Work that is saved for the workspace that takes the place of a first one is in that one from the beginning, after a kill too.
func TestTheNextWorkspaceGetsTheWork(t *testing.T) {
	real.Long(t)
	for _, cut := range []string{
		"", "command git --git-dir=\"$d/git\" symbolic-ref", ": >\"$d/made\"", "scratch read-tree -n", "real symbolic-ref -m",
		"mv \"$g/index.lock\"", "rm -f \"$g/index.vmctl\"\nif [ -n",
	} {
		t.Run("killed before "+cut, func(t *testing.T) {
			w := newBench(t, inVM).workspace()
			w.create(t)
			w.git(t, w.path, "commit", "-q", "--allow-empty", "-m", "two")
			must(t, os.WriteFile(filepath.Join(w.path, "new"), []byte("new\n"), 0o600))
			must(t, os.WriteFile(filepath.Join(w.path, "a"), []byte("staged\n"), 0o700))
			w.git(t, w.path, "add", "a")
			want := w.picture(t, false)
			must(t, w.do("keep", providers.PhaseFree))
			w.lose(t)
			if cut != "" {
				w.rewrite = []string{cut, "kill -9 $$\n" + cut}
				if err := w.do("check_out", providers.PhaseMake); err == nil {
					t.Fatal("it was not killed")
				}
				w.rewrite = nil
				w.half(t)
			}
			w.create(t)
			if diff := cmp.Diff(want, w.picture(t, false)); diff != "" {
				t.Errorf("work (-before +after):\n%s", diff)
			}
			w.lose(t) // nothing is kept for a third one
			w.create(t)
			w.whole(t)
		})
	}
}

// Work that cannot be brought back stays in its save, and the workspace that was to get it is whole.
func TestWorkThatCannotBeBroughtBack(t *testing.T) {
	for name, place := range map[string]spec.Address{"worktree": spec.ThisHost, "guest": inVM} {
		t.Run(name, func(t *testing.T) {
			w := newBench(t, place).workspace()
			w.create(t)
			must(t, os.WriteFile(filepath.Join(w.path, "new"), []byte("new\n"), 0o600))
			must(t, w.do("remove_kept", providers.PhaseRemove))
			w.git(t, w.repo, "checkout", "-q", w.branch)
			w.git(t, w.repo, "commit", "-q", "--allow-empty", "-m", "of this host")
			w.git(t, w.repo, "checkout", "-q", "main")
			err := w.do("check_out", providers.PhaseMake)
			var f *providers.Problem
			if !errors.As(err, &f) || f.Code != "not_restored" {
				t.Fatalf("check_out: %v", err)
			}
			w.whole(t)
			saves := w.git(t, w.repo, "for-each-ref", "--format=%(refname)", "refs/vmctl/", "refs/vmctl-awaited/")
			if text := w.git(t, w.repo, "show", saves[:len(saves)-1]+":worktree/new"); text != "new\n" {
				t.Errorf("the save has %q", text)
			}
			w.create(t)
			w.whole(t)
		})
	}
}

// Work that is kept for the next workspace is in it where that has another address by now, whenever the run before was cut short. What
// was kept for one that was never made is not brought back later.
func TestTheNextWorkspaceHasAnotherAddress(t *testing.T) {
	for name, place := range map[string]spec.Address{"worktree": spec.ThisHost, "guest": inVM} {
		soiled := func(t *testing.T) *work {
			w := newBench(t, place).workspace()
			w.create(t)
			must(t, os.WriteFile(filepath.Join(w.path, "new"), []byte("new\n"), 0o600))
			return w
		}
		nothingAwaited := func(t *testing.T, w *work) {
			t.Helper()
			if refs := w.git(t, w.repo, "for-each-ref", "--format=%(refname)", "refs/vmctl-awaited/"); refs != "" {
				t.Errorf("awaited: %s", refs)
			}
		}
		t.Run(name+", killed before it is made", func(t *testing.T) {
			w := soiled(t)
			must(t, w.do("remove_kept", providers.PhaseRemove))
			w.rename()
			w.create(t)
			if got := read(t, filepath.Join(w.path, "new")); got != "new\n" {
				t.Errorf("the file has %q", got)
			}
			nothingAwaited(t, w)
		})
		t.Run(name+", killed before the work is back", func(t *testing.T) {
			w := soiled(t)
			must(t, w.do("remove_kept", providers.PhaseRemove))
			w.rewrite = []string{"scratch read-tree -n", "kill -9 $$\nscratch read-tree -n"}
			if err := w.do("check_out", providers.PhaseMake); err == nil {
				t.Fatal("it was not killed")
			}
			w.rewrite = nil
			w.rename()
			w.create(t)
			if got := read(t, filepath.Join(w.path, "new")); got != "new\n" {
				t.Errorf("the file has %q", got)
			}
		})
		t.Run(name+", of another branch", func(t *testing.T) {
			w := soiled(t)
			must(t, w.do("remove_kept", providers.PhaseRemove))
			w.rename()
			w.branch = "other"
			w.create(t)
			w.whole(t)
		})
		for _, op := range []string{"remove", "remove_saved", "remove_kept"} {
			t.Run(name+", killed before the removal, and then clean and removed by "+op, func(t *testing.T) {
				w := soiled(t)
				must(t, w.do("keep", providers.PhaseFree))
				must(t, os.Remove(filepath.Join(w.path, "new")))
				must(t, w.do(op, providers.PhaseRemove))
				nothingAwaited(t, w)
				w.create(t)
				w.whole(t)
			})
		}
		t.Run(name+", killed before the removal, and then renamed", func(t *testing.T) {
			w := soiled(t)
			must(t, w.do("keep", providers.PhaseFree))
			must(t, os.Remove(filepath.Join(w.path, "new")))
			w.rename()
			must(t, w.do("write", providers.PhaseChange))
			nothingAwaited(t, w)
		})
	}
}

// lose takes the guest away with all that is in it.
func (w *work) lose(t *testing.T) {
	t.Helper()
	must(t, os.RemoveAll(w.path))
	must(t, os.RemoveAll(filepath.Join(w.home, ".vmctl")))
}
