package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/providers"
	"vmctl/providers/workspace"
)

// gated returns the files for which a checkout is not moved, and the commit that is to be trusted.
func gated(t *testing.T, err error) ([]string, string) {
	t.Helper()
	var changed *workspace.SpecError
	if !errors.As(err, &changed) {
		t.Fatalf("the checkout is not kept: %v", err)
	}
	return changed.Files, changed.Head
}

// A guest's commits come into no checkout of this host while they change what the spec reads, unless the last of them is trusted.
func TestFetchKeepsTheSpecOfACheckout(t *testing.T) {
	b := newBench(t, inVM)
	b.read = []string{filepath.Join(b.repo, "d", "x")}
	b.open(t)
	w := b.workspace()
	w.create(t)
	x := w.provider.(workspace.Exchanger)
	commit := func(name string) string {
		must(t, os.WriteFile(filepath.Join(w.path, name), []byte("theirs\n"), 0o600))
		w.git(t, w.path, "add", "-f", "-A")
		w.git(t, w.path, "commit", "-q", "-m", name)
		return strings.TrimSpace(w.git(t, w.path, "rev-parse", "HEAD"))
	}
	at := func() string { return strings.TrimSpace(w.git(t, w.repo, "rev-parse", "refs/heads/"+w.branch)) }

	w.git(t, w.repo, "checkout", "-q", w.branch)
	plain := commit("a")
	if _, err := x.Fetch(t.Context(), w.id, ""); err != nil || at() != plain {
		t.Fatalf("a change to no file of the spec: %v", err)
	}
	for _, name := range []string{"d/x", "new.vmctl.hcl"} {
		before := at()
		head := commit(name)
		for _, trusted := range []string{"", before} {
			_, err := x.Fetch(t.Context(), w.id, trusted)
			files, trust := gated(t, err)
			if diff := cmp.Diff([]string{name}, files); diff != "" || trust != head || at() != before {
				t.Errorf("%s: files (-want +got):\n%s\nto trust is %s, want %s; the branch is at %s, want %s", name, diff, trust, head, at(), before)
			}
		}
		if _, err := x.Fetch(t.Context(), w.id, head); err != nil || at() != head {
			t.Errorf("%s, trusted: %v", name, err)
		}
	}

	// A branch that is checked out nowhere moves: no file is changed.
	w.git(t, w.repo, "checkout", "-q", "main")
	must(t, os.Remove(filepath.Join(w.path, "new.vmctl.hcl")))
	head := commit("a")
	if _, err := x.Fetch(t.Context(), w.id, ""); err != nil || at() != head {
		t.Errorf("checked out nowhere: %v", err)
	}
}

// A branch that is checked out and has no commit yet gets no spec either.
func TestFetchKeepsTheSpecOfABranchWithoutCommits(t *testing.T) {
	w := newBench(t, inVM).workspace()
	w.create(t)
	must(t, os.WriteFile(filepath.Join(w.path, "x.vmctl.hcl"), nil, 0o600))
	w.git(t, w.path, "add", "-A")
	w.git(t, w.path, "commit", "-q", "-m", "more")
	w.git(t, w.repo, "update-ref", "-d", "refs/heads/"+w.branch)
	w.git(t, w.repo, "symbolic-ref", "HEAD", "refs/heads/"+w.branch)
	w.git(t, w.repo, "rm", "-r", "-q", "-f", ".")
	_, err := w.provider.(workspace.Exchanger).Fetch(t.Context(), w.id, "")
	files, _ := gated(t, err)
	if diff := cmp.Diff([]string{"x.vmctl.hcl"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// Whatever the spec reads counts, on whatever way it comes there.
func TestWhatTheSpecReadsCounts(t *testing.T) {
	for name, test := range map[string]struct {
		read  string
		links map[string]string
		side  map[string]string
		want  []string
	}{
		"a file":               {read: "repo/conf/seed.yaml", side: texts("conf/seed.yaml", "1"), want: []string{"conf/seed.yaml"}},
		"another file":         {read: "repo/conf/seed.yaml", side: texts("conf/other", "1")},
		"capital letters":      {read: "repo/conf/seed.yaml", side: texts("Conf/Seed.yaml", "1"), want: []string{"Conf/Seed.yaml"}},
		"a module":             {read: "repo/module", side: texts("module/new/main.tf", "1"), want: []string{"module/new/main.tf"}},
		"the folder itself":    {read: "repo", side: texts("any", "1"), want: []string{"any"}},
		"what a link names":    {read: "repo/x", links: map[string]string{"x": "to/y", "to/y": "../z"}, side: texts("z", "1"), want: []string{"z"}},
		"a link on the way":    {read: "repo/x", links: map[string]string{"x": "to/y", "to/y": "../z"}, side: texts("to/y", "1"), want: []string{"to/y"}},
		"a folder that is one": {read: "repo/conf/seed", links: map[string]string{"conf": "real"}, side: texts("conf", "-", "conf/seed", "1"), want: []string{"conf", "conf/seed"}},
		"elsewhere":            {read: "other/a", side: texts("a", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t.TempDir(), t.Fatalf)
			d.write("repo/to/keep", "")
			for link, to := range test.links {
				if err := os.Symlink(to, d.path("repo/"+link)); err != nil {
					t.Fatal(err)
				}
			}
			d.commit(texts("z", "0"))
			d.git("repo", "checkout", "-q", "-b", "side")
			for link := range test.links {
				if _, changes := test.side[link]; changes {
					if err := os.Remove(d.path("repo/" + link)); err != nil {
						t.Fatal(err)
					}
				}
			}
			for name, text := range test.side {
				if text != "-" {
					d.write("repo/"+name, text)
				}
			}
			d.commit(nil)
			d.git("repo", "checkout", "-q", "main")
			d.read = []string{d.path(test.read)}
			_, err := d.merge(t.Context(), workspace.Merge{})
			if test.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			files, _ := gated(t, err)
			if diff := cmp.Diff(test.want, files); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// Apply fetches no such commits: the step says what to read and to type, and once they are known the plan does.
func TestApplyFetchesNoSpec(t *testing.T) {
	w := newBench(t, inVM).workspace()
	w.create(t)
	must(t, os.WriteFile(filepath.Join(w.path, "x.vmctl.hcl"), nil, 0o600))
	w.git(t, w.path, "add", "-A")
	w.git(t, w.path, "commit", "-q", "-m", "more")
	w.git(t, w.repo, "checkout", "-q", w.branch)
	var p *providers.Problem
	if err := w.do("fetch", providers.PhaseChange); !errors.As(err, &p) || p.Code != "untrusted_spec" || p.Outcome != providers.Unsafe || len(p.Next) != 2 {
		t.Errorf("the step: %+v", err)
	}
}
