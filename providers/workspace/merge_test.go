package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/providers"
	"vmctl/providers/guest"
	"vmctl/providers/workspace"
)

// desk is a folder of this host with a repository, "repo", in a home of its own.
type desk struct {
	home string
	read []string // what the spec reads
	fail func(format string, args ...any)
}

func newDesk(dir string, fail func(string, ...any)) desk {
	d := desk{home: dir, fail: fail}
	if err := os.MkdirAll(d.path("repo"), 0o700); err != nil {
		fail("%v", err)
	}
	d.git("repo", "init", "-q", "-b", "main")
	d.git("repo", "config", "user.name", "Ann")
	d.git("repo", "config", "user.email", "ann@example.org")
	return d
}

func (d desk) path(name string) string { return filepath.Join(d.home, filepath.FromSlash(name)) }

func (d desk) env() []string {
	return []string{
		"HOME=" + d.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
	}
}

func (d desk) try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = d.path(dir), d.env()
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

func (d desk) git(dir string, args ...string) string {
	out, err := d.try(dir, args...)
	if err != nil {
		d.fail("git %q: %v\n%s", args, err, out)
	}
	return out
}

func (d desk) write(name, text string) {
	if err := os.MkdirAll(filepath.Dir(d.path(name)), 0o700); err != nil {
		d.fail("%v", err)
	}
	if err := os.WriteFile(d.path(name), []byte(text), 0o600); err != nil {
		d.fail("%v", err)
	}
}

// commit writes files, and commits all that is there. A text of "-" removes the file.
func (d desk) commit(files map[string]string) {
	const dir = "repo"
	for name, text := range files {
		if text == "-" {
			if err := os.Remove(d.path(dir + "/" + name)); err != nil {
				d.fail("%v", err)
			}
			continue
		}
		d.write(dir+"/"+name, text)
	}
	d.git(dir, "add", "-A")
	d.git(dir, "commit", "-q", "--allow-empty", "-m", "more")
}

// branched makes a repository whose branch side has changes, and whose main is checked out, with others.
func (d desk) branched(base, side, main map[string]string) {
	d.commit(base)
	d.git("repo", "checkout", "-q", "-b", "side")
	d.commit(side)
	d.git("repo", "checkout", "-q", "main")
	if main != nil {
		d.commit(main)
	}
}

func (d desk) repositories() workspace.Repositories {
	return workspace.Repositories{Files: d.home, Read: d.read, Host: workspace.Host{Home: d.home, Enter: func() (providers.Guest, error) {
		return guest.OnHost(d.home, d.env()), nil
	}}}
}

func (d desk) merge(ctx context.Context, m workspace.Merge) (workspace.Merged, error) {
	m.Repo, m.Branch, m.Title = "repo", "side", "Merge side"
	return d.repositories().Merge(ctx, m)
}

// all returns everything that a checkout has: its files with their content, its branches, what git status says.
func (d desk) all() string {
	const dir = "repo"
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n%s\n%s\n", d.git(dir, "symbolic-ref", "HEAD"), d.git(dir, "for-each-ref"), d.git(dir, "status", "--porcelain", "--ignored"))
	err := filepath.WalkDir(d.path(dir), func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == ".git":
			return filepath.SkipDir
		case e.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s: %q\n", strings.TrimPrefix(path, d.path(dir)), text)
		return err
	})
	if err != nil {
		d.fail("%v", err)
	}
	return b.String()
}

func texts(pairs ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

// A merge brings all of a branch, by a forward move, a commit with two parents, or one with all in it.
func TestMerge(t *testing.T) {
	base := texts("a", "1\n2\n3\n", "b", "x\n")
	for _, test := range []struct {
		name       string
		side, main map[string]string
		squash     bool
		parents    int
	}{
		{name: "forward", side: texts("a", "1\n2\n3\n4\n"), parents: 1},
		{name: "two parents", side: texts("a", "1\n2\n3\n4\n"), main: texts("b", "y\n"), parents: 2},
		{name: "squashed", side: texts("a", "1\n2\n3\n4\n"), main: texts("b", "y\n"), squash: true, parents: 1},
		{name: "squashed, and forward", side: texts("a", "1\n2\n3\n4\n"), squash: true, parents: 1},
		{name: "odd names", side: texts("it's $(touch x);\n é", "1"), main: texts("-b", "y\n"), parents: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t.TempDir(), t.Fatalf)
			d.branched(base, test.side, test.main)
			d.write("repo/kept", "untracked")
			before := d.git("repo", "rev-parse", "HEAD")
			m, err := d.merge(t.Context(), workspace.Merge{Squash: test.squash})
			if err != nil {
				t.Fatal(err)
			}
			head := d.git("repo", "rev-parse", "HEAD")
			if want := (workspace.Merged{Branch: "main", From: before, To: head}); m != want {
				t.Errorf("the merge reports %+v, want %+v", m, want)
			}
			if got := len(strings.Fields(d.git("repo", "log", "-1", "--format=%P"))); got != test.parents {
				t.Errorf("the commit has %d parents, want %d", got, test.parents)
			}
			if test.squash && d.git("repo", "rev-parse", "HEAD^") != before {
				t.Error("the commit does not follow on the one before")
			}
			if got := d.git("repo", "status", "--porcelain"); got != "?? kept" {
				t.Errorf("git status says %q", got)
			}
			again, err := d.merge(t.Context(), workspace.Merge{})
			if !test.squash && (err != nil || again.From != head || again.To != head) {
				t.Errorf("a second merge reports %+v, %v", again, err)
			}
		})
	}
}

// What stands in the way of a merge is named, and then nothing changes.
func TestAMergeIsRefused(t *testing.T) {
	base := texts("a", "1\n2\n3\n", "b", "x\n", ".gitignore", "*.o\nout\n")
	for _, test := range []struct {
		name       string
		side, main map[string]string
		prepare    func(d desk)
		trusted    string
		want       string
		files      []string
	}{
		{
			name: "conflict", side: texts("a", "1\nours\n3\n", "b", "o\n"), main: texts("a", "1\ntheirs\n3\n", "b", "t\n"),
			want: "it conflicts with branch main of this host; nothing was changed", files: []string{"a", "b"},
		},
		{
			name: "changed file", side: texts("a", "new\n"), prepare: func(d desk) { d.write("repo/a", "mine\n") },
			want: "that are in no commit", files: []string{"a"},
		},
		{
			name: "staged file", side: texts("a", "new\n"), main: texts("b", "y\n"),
			prepare: func(d desk) { d.write("repo/a", "mine\n"); d.git("repo", "add", "a") },
			want:    "that are in no commit", files: []string{"a"},
		},
		{
			name: "untracked file", side: texts("n w", "new\n"), prepare: func(d desk) { d.write("repo/n w", "mine\n") },
			want: "that are in no commit", files: []string{"n w"},
		},
		{
			name: "ignored file", side: texts(".gitignore", "", "x.o", "new\n"), prepare: func(d desk) { d.write("repo/x.o", "mine\n") },
			want: "that are in no commit", files: []string{"x.o"},
		},
		{
			name: "ignored file, and a merge", side: texts(".gitignore", "", "x.o", "new\n"), main: texts("b", "y\n"),
			prepare: func(d desk) { d.write("repo/x.o", "mine\n") },
			want:    "that are in no commit", files: []string{"x.o"},
		},
		{
			name: "ignored folder", side: texts(".gitignore", "", "out", "new\n"), prepare: func(d desk) { d.write("repo/out/mine", "mine\n") },
			want: "that are in no commit", files: []string{"out"},
		},
		{
			name: "ignored file in the way of a folder", side: texts(".gitignore", "", "out/new", "new\n"), prepare: func(d desk) { d.write("repo/out", "mine\n") },
			want: "that are in no commit", files: []string{"out"},
		},
		{
			name: "merge under way", side: texts("a", "new\n"), main: texts("a", "other\n"),
			prepare: func(d desk) {
				if out, err := d.try("repo", "merge", "side"); err == nil {
					d.fail("no conflict: %s", out)
				}
			},
			want: "a merge was begun in ",
		},
		{name: "same branch", side: texts("a", "new\n"), prepare: func(d desk) { d.git("repo", "checkout", "-q", "side") }, want: "branch side is itself checked out in "},
		{name: "spec", side: texts("sub/x.vmctl.hcl", "1"), want: "files that vmctl acts on", files: []string{"sub/x.vmctl.hcl"}},
		{name: "spec in capital letters", side: texts("X.VMCTL.hcl", "1"), main: texts("b", "y\n"), want: "files that vmctl acts on", files: []string{"X.VMCTL.hcl"}},
		{
			name: "spec that comes and goes", side: texts("x.vmctl.hcl", "1"), prepare: func(d desk) {
				d.git("repo", "checkout", "-q", "side")
				d.commit(texts("x.vmctl.hcl", "-"))
				d.git("repo", "checkout", "-q", "main")
			},
			want: "files that vmctl acts on", files: []string{"x.vmctl.hcl"},
		},
		{name: "another commit is trusted", side: texts("x.vmctl.hcl", "1"), trusted: strings.Repeat("0", 40), want: "--trust-spec names commit 0000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t.TempDir(), t.Fatalf)
			d.branched(base, test.side, test.main)
			if test.prepare != nil {
				test.prepare(d)
			}
			before := d.all()
			_, err := d.merge(t.Context(), workspace.Merge{Trusted: test.trusted})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the merge says %v, want %q", err, test.want)
			}
			var (
				refused  *workspace.RefusedError
				conflict *workspace.ConflictError
				changed  *workspace.SpecError
				files    []string
			)
			switch {
			case errors.As(err, &refused):
				files = refused.Seen
			case errors.As(err, &conflict):
				files = conflict.Files
			case errors.As(err, &changed):
				files = changed.Files
			default:
				t.Errorf("%v is no refusal", err)
			}
			if !slices.Equal(files, test.files) {
				t.Errorf("named are the files %q, want %q", files, test.files)
			}
			if diff := cmp.Diff(before, d.all()); diff != "" {
				t.Errorf("a refused merge changed something (-before +after):\n%s", diff)
			}
		})
	}
}

// A spec is merged when its commit is named, and one that this host's branch had already needs no word.
func TestATrustedSpecIsMerged(t *testing.T) {
	d := newDesk(t.TempDir(), t.Fatalf)
	d.branched(texts("a", "1"), texts("x.vmctl.hcl", "1"), texts("b", "2"))
	_, err := d.merge(t.Context(), workspace.Merge{})
	var changed *workspace.SpecError
	if !errors.As(err, &changed) || changed.Head != d.git("repo", "rev-parse", "side") {
		t.Fatalf("the merge says %v, and to trust %+v", err, changed)
	}
	if _, err := d.merge(t.Context(), workspace.Merge{Trusted: changed.Head}); err != nil {
		t.Fatal(err)
	}
	d.commit(texts("y.vmctl.hcl", "of the host"))
	d.git("repo", "checkout", "-q", "side")
	d.git("repo", "merge", "-q", "main")
	d.commit(texts("a", "2"))
	d.git("repo", "checkout", "-q", "main")
	if _, err := d.merge(t.Context(), workspace.Merge{}); err != nil {
		t.Errorf("the spec of the host's own branch is in the way: %v", err)
	}
}

// Neither hooks nor the settings of a branch change what a merge does.
func TestAMergeRunsNoHook(t *testing.T) {
	d := newDesk(t.TempDir(), t.Fatalf)
	d.branched(texts("a", "1"), texts("b", "2"), texts("c", "2"))
	for _, hook := range []string{"post-merge", "pre-merge-commit", "post-checkout", "reference-transaction", "post-commit", "post-index-change"} {
		d.write("repo/.git/hooks/"+hook, "#!/bin/sh\ntouch "+d.path("ran")+"\n")
		if err := os.Chmod(d.path("repo/.git/hooks/"+hook), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.git("repo", "config", "branch.main.mergeOptions", "--squash --no-ff --no-commit")
	d.git("repo", "config", "merge.autoStash", "true")
	m, err := d.merge(t.Context(), workspace.Merge{})
	if err != nil || d.git("repo", "rev-parse", "HEAD") != m.To || m.From == m.To {
		t.Errorf("the merge reports %+v, %v", m, err)
	}
	if _, err := os.Lstat(d.path("ran")); err == nil {
		t.Error("a hook ran")
	}
}

// limitCases lets the search of a test try n cases, each of which runs git many times, unless -rapid.checks says how many.
func limitCases(t *testing.T, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	if before != checks.DefValue {
		return
	}
	if err := checks.Value.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := checks.Value.Set(before); err != nil {
			t.Error(err)
		}
	})
}

// The tree of a merge is the one that git merge makes in a clone; where git merge has conflicts, the same files are named,
// and nothing changes.
func TestAMergeIsAsGitMerges(t *testing.T) {
	names := []string{"a", "b", "d/a", "d/b", "it's $x"}
	limitCases(t, 12)
	root := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		d := newDesk(filepath.Join(root, fmt.Sprint(n)), t.Fatalf)
		draw := func(label string, among []string) map[string]string {
			all := map[string]string{}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(among), 0, 3, rapid.ID).Draw(t, label) {
				var b strings.Builder
				for i := range 4 {
					fmt.Fprintf(&b, "line %d %s\n\n", i, rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, label+" line"))
				}
				all[name] = b.String()
			}
			return all
		}
		base := draw("base", names)
		base["a"] = "line 0 \n\nline 1 \n\nline 2 \n\nline 3 \n\n"
		side, main := draw("side", names), draw("main", names)
		if rapid.Bool().Draw(t, "removed") {
			side["a"] = "-"
		}
		d.branched(base, side, main)
		if out, err := d.try(".", "clone", "-q", "repo", "clone"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		d.git("clone", "config", "user.name", "Ann")
		d.git("clone", "config", "user.email", "ann@example.org")
		_, refused := d.try("clone", "merge", "-q", "-m", "x", "origin/side")
		before := d.all()
		_, err := d.merge(t.Context(), workspace.Merge{Squash: rapid.Bool().Draw(t, "squash")})
		if refused == nil {
			if err != nil {
				t.Fatalf("git merges, and vmctl says: %v", err)
			}
			if want, got := d.git("clone", "rev-parse", "HEAD^{tree}"), d.git("repo", "rev-parse", "HEAD^{tree}"); got != want {
				t.Fatalf("the tree is %s, want %s", got, want)
			}
			if got := d.git("repo", "status", "--porcelain"); got != "" {
				t.Fatalf("git status says %q", got)
			}
			return
		}
		var conflict *workspace.ConflictError
		if !errors.As(err, &conflict) {
			t.Fatalf("git has conflicts, and vmctl says: %v", err)
		}
		want := strings.FieldsFunc(d.git("clone", "diff", "--name-only", "--diff-filter=U", "-z"), func(r rune) bool { return r == 0 })
		slices.Sort(want)
		if diff := cmp.Diff(slices.Compact(want), conflict.Files); diff != "" {
			t.Fatalf("files in conflict (-git +vmctl):\n%s", diff)
		}
		if diff := cmp.Diff(before, d.all()); diff != "" {
			t.Fatalf("a refused merge changed something (-before +after):\n%s", diff)
		}
	})
}
