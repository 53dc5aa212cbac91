package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/internal/real"
	"vmctl/providers"
	"vmctl/providers/workspace"
	"vmctl/spec"
)

// A restore that is killed before any of its commands is seen, and goes on: nothing of the save is missing then, and what was
// written meanwhile is in a save of its own.
//
// row A47, of restores that are killed
func TestARestoreThatIsKilledGoesOn(t *testing.T) {
	real.Long(t)
	lines := workspace.PutBackLines()
	cuts := slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		once := 0
		for _, other := range lines {
			if other == line {
				once++
			}
		}
		return strings.TrimSpace(line) == "" || once > 1
	})
	if len(cuts) < 30 {
		t.Fatalf("it has only %d commands", len(cuts))
	}
	for name, place := range map[string]spec.Address{"worktree": spec.ThisHost, "guest": inVM} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, place)
			limitCases(t, 12)
			rapid.Check(t, func(rt *rapid.T) {
				w := b.workspace()
				w.create(rt)
				for n := range rapid.IntRange(1, 14).Draw(rt, "changes") {
					w.mess(rt, n)
				}
				saved, err := w.saver().Save(t.Context(), w.id, workspace.SaveOptions{Ignored: rapid.Bool().Draw(rt, "ignored")})
				if err != nil {
					rt.Skip("it cannot be saved")
				}
				want := w.picture(rt, saved.Ignores)
				b.drop(rt, w)
				w.create(rt)
				w.cut(t, rt, rapid.SampledFrom(cuts).Draw(rt, "cut"), saved)
				got := w.picture(rt, saved.Ignores)
				if w.stale {
					delete(want, "status")
					delete(got, "status")
				}
				if diff := cmp.Diff(want, got); diff != "" {
					rt.Fatalf("work (-saved +restored):\n%s", diff)
				}
				b.drop(rt, w)
				b.try(b.repo, "stash", "clear")
			})
		})
	}
}

// cut kills a restore before one of its commands, and goes on as an apply or a user does.
func (w *work) cut(t *testing.T, rt *rapid.T, command string, saved workspace.Saved) {
	t.Helper()
	w.rewrite = []string{"\n" + command + "\n", "\nkill -9 $$\n" + command + "\n"}
	_, err := w.saver().Restore(t.Context(), w.id, workspace.RestoreOptions{Name: saved.Name})
	w.rewrite = nil
	switch half := finding(w.see(t)[w.id], providers.FindPartial); {
	case err == nil: // it has nothing for that command to do
	case half == nil: // it had not begun
		_, err := w.saver().Restore(t.Context(), w.id, workspace.RestoreOptions{Name: saved.Name})
		must(rt, err)
	default:
		const name = "written meanwhile"
		path := filepath.Join(w.path, name)
		meanwhile := rapid.Bool().Draw(rt, "meanwhile")
		if meanwhile {
			must(rt, os.WriteFile(path, []byte("mine\n"), 0o600))
		}
		if err := w.do("check_out", providers.PhaseMake); err != nil {
			var f *providers.Problem
			errors.As(err, &f)
			rt.Fatalf("%v %q", err, f.Seen)
		}
		if !meanwhile {
			break
		}
		if _, err := os.Lstat(path); err == nil {
			rt.Fatalf("%s is still there", name)
		}
		refs := strings.Fields(w.git(rt, w.repo, "for-each-ref", "--format=%(refname)", "refs/vmctl/"+string(w.id)+"/"))
		if !slices.ContainsFunc(refs, func(ref string) bool {
			text, ok := w.try(w.repo, "cat-file", "blob", ref+":worktree/"+name)
			return ok && text == "mine\n"
		}) {
			rt.Fatalf("no save has what was written meanwhile: %v", refs)
		}
	}
	if half := finding(w.see(t)[w.id], providers.FindPartial); half != nil {
		rt.Fatalf("in the end: %v", half.Evidence)
	}
}
