package workspace_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"vmctl/providers"
	"vmctl/providers/guest"
	"vmctl/providers/workspace"
	"vmctl/spec"
)

// bench has a repository of this host, and one place for workspaces: this host, or a guest with a home of its own.
type bench struct {
	t        *testing.T
	repo     string
	home     string // of the place
	provider providers.Provider
	env      []string
	made     int
	vm       providers.ID // of the guest
	here     string       // the home of this host
	place    spec.Address
	digest   func(string) string
	rewrite  []string // texts of the programs, each before the one that the guest has in its place
	refuse   string   // a part of the programs that the guest is not reached for
	read     []string // what the spec reads
	ran      []string // the folders and arguments of what ran on this host
}

// fataler is the part of testing.T and rapid.T that ends a test.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newBench(t *testing.T, place spec.Address) *bench {
	t.Helper()
	b := &bench{t: t, vm: "vm-1", repo: filepath.Join(t.TempDir(), "it's a $repo"), home: t.TempDir()}
	here := t.TempDir()
	b.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + here}
	if place == spec.ThisHost {
		b.home = here
	}
	b.here, b.place = here, place
	b.digest = func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	b.open(t)
	if err := os.Mkdir(b.repo, 0o700); err != nil {
		t.Fatal(err)
	}
	b.git(t, b.repo, "init", "-q", "-b", "main")
	b.git(t, b.repo, "config", "user.name", "Ann")
	b.git(t, b.repo, "config", "user.email", "ann@example.org")
	b.git(t, b.repo, "config", "core.protectNTFS", "false")
	for name, text := range map[string]string{"a": "one\n", "d/x": "x\n", ".gitignore": "*.o\n", "run": "#!/bin/sh\n", "crlf": "a\r\nb\n"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(b.repo, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(b.repo, name), []byte(text), 0o700))
	}
	b.git(t, b.repo, "add", ".")
	b.git(t, b.repo, "commit", "-q", "-m", "one")
	return b
}

// open opens the provider anew.
func (b *bench) open(t *testing.T) {
	t.Helper()
	inside := guest.OnHost(b.home, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var err error
	b.provider, err = workspace.Type(workspace.Host{
		Home: b.here, Enter: func() (providers.Guest, error) { return noting{guest.OnHost(b.here, b.env), b}, nil },
	}).Open(t.Context(), providers.Settings{
		Files: t.TempDir(), Project: providers.Project{Name: "demo", ID: "k7m2qd9x4r"}, Now: func() time.Time { return now }, Digest: b.digest, Read: b.read,
		Via: &providers.Via{
			Address: b.place, Enter: func(context.Context) (providers.Guest, error) { return failing{inside, b}, nil },
			Object: func(context.Context) (providers.Object, error) { return providers.Object{ID: b.vm}, nil },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// reopened returns the bench with a provider that remembers nothing.
func (b *bench) reopened(t *testing.T) *bench {
	t.Helper()
	other := *b
	other.open(t)
	return &other
}

// failing is a guest that is not reached for some programs.
type failing struct {
	providers.Guest
	b *bench
}

func (f failing) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	if len(f.b.rewrite) > 0 && len(c.Args) > 2 {
		c.Args = slices.Clone(c.Args)
		c.Args[2] = strings.NewReplacer(f.b.rewrite...).Replace(c.Args[2])
	}
	if f.b.refuse != "" && len(c.Args) > 2 && strings.Contains(c.Args[2], f.b.refuse) {
		return providers.Output{}, errors.New("the connection was lost")
	}
	return f.Guest.Run(ctx, c)
}

// noting is a guest that notes what runs in it.
type noting struct {
	providers.Guest
	b *bench
}

func (n noting) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	n.b.ran = append(n.b.ran, c.Dir+" "+strings.Join(c.Args, " "))
	return n.Guest.Run(ctx, c)
}

func must(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// try runs git in a folder. It reports whether git succeeded.
func (b *bench) try(dir string, args ...string) (string, bool) {
	cmd := exec.Command("git", append([]string{"-c", "core.quotePath=true"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(b.env[:len(b.env):len(b.env)], "GIT_LITERAL_PATHSPECS=1", "LC_ALL=C")
	out, err := cmd.Output()
	return string(out), err == nil
}

func (b *bench) git(t fataler, dir string, args ...string) string {
	t.Helper()
	out, ok := b.try(dir, args...)
	if !ok {
		t.Fatalf("git %q in %s failed: %s", args, dir, out)
	}
	return out
}

// work is one workspace of a bench.
type work struct {
	*bench
	branch, path string
	id           providers.ID
	stale        bool           // git's settings changed after it had looked at files
	name         string         // of its address; "": its ID
	was          []spec.Address // addresses that it had before
}

func (b *bench) workspace() *work {
	b.made++
	return &work{bench: b, branch: fmt.Sprintf("b%d", b.made), path: filepath.Join(b.home, fmt.Sprintf("ws %d", b.made)), id: providers.ID(fmt.Sprintf("w%d", b.made))}
}

func (w *work) address() spec.Address {
	if w.name == "" {
		return spec.Address{Kind: spec.Workspace, Name: string(w.id)}
	}
	return spec.Address{Kind: spec.Workspace, Name: w.name}
}

// rename gives a workspace the address workspace.uno, as a moved block does.
func (w *work) rename() { w.was, w.name = append(w.was, w.address()), "uno" }

func (w *work) do(op string, phase providers.Phase) error {
	inv, err := w.provider.Observe(w.t.Context(), providers.Query{})
	if err != nil {
		return err
	}
	expect := ""
	for _, o := range inv.Objects {
		if o.ID == w.id {
			expect = o.Fingerprint
		}
	}
	_, err = w.provider.Do(w.t.Context(), providers.Work{
		Step:   providers.Step{Op: op, Phase: phase, Address: w.address(), Object: w.id, Name: string(w.id)},
		Expect: expect, Generation: 1, Was: w.was,
		Want: cty.ObjectVal(map[string]cty.Value{
			"repo": cty.StringVal(w.repo), "branch": cty.StringVal(w.branch), "path": cty.StringVal(w.path),
		}),
		Policy: cty.ObjectVal(map[string]cty.Value{"create_branch": cty.True}),
	}, func(providers.Progress) {})
	return err
}

func (w *work) create(t fataler) {
	t.Helper()
	err := w.do("check_out", providers.PhaseMake)
	must(t, err)
}

func (w *work) saver() workspace.Saver { return w.provider.(workspace.Saver) }

// picture shows all of the work in a workspace. ignored: with the files that git ignores.
func (w *work) picture(t fataler, ignored bool) map[string]string {
	t.Helper()
	all := map[string]string{}
	out := map[string]bool{}
	if !ignored {
		for _, name := range strings.Split(w.git(t, w.path, "ls-files", "-o", "-i", "--exclude-standard", "-z"), "\x00") {
			out[name] = true
		}
	}
	must(t, filepath.WalkDir(w.path, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(w.path, path)
		switch {
		case err != nil:
			return err
		case name == ".git" && e.IsDir():
			return fs.SkipDir
		case e.IsDir(), name == ".git", out[name]:
			return nil
		}
		if e.Type() == fs.ModeSymlink {
			to, err := os.Readlink(path)
			all["file "+name] = "-> " + to
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		all["file "+name] = fmt.Sprintf("%v %q", info.Mode()&0o100, text)
		return nil
	}))
	all["index"] = w.git(t, w.path, "ls-files", "--stage", "-z")
	all["flags"] = w.git(t, w.path, "ls-files", "-v", "-z")
	all["status"] = w.git(t, w.path, "status", "--porcelain=v2", "-z", "--untracked-files=all")
	all["head"], _ = w.try(w.path, "rev-parse", "HEAD")
	all["branch"], _ = w.try(w.path, "symbolic-ref", "-q", "HEAD")
	all["stashes"] = w.git(t, w.path, "stash", "list", "--format=%H %gs")
	all["refs"] = w.git(t, w.path, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
	return all
}

// hostile lists names of files.
func hostile() []string {
	return []string{
		"a", "d", "d/x", "d/y/z", "run", "crlf", "new", "-n", "--", "it's", "two\nlines", "tab\tbed", "$(touch x)", `q"uote`, "back\\slash", " lead", "trail ",
		":(top)x", "*", "ü", "\xff\xfe", "x.o", "d/y.o", ".gitignore", "new/deep/er", "100644 x", "\n", "D",
	}
}

// mess changes a workspace in one way. What git refuses is not done.
func (w *work) mess(t *rapid.T, n int) {
	name := rapid.SampledFrom(hostile()).Draw(t, "name")
	path := filepath.Join(w.path, name)
	text := rapid.SampledFrom([]string{"", "x", "l1\r\nl2\n", "l1\nl2\n", "\x00\xff", "$Id$", "*.o\n"}).Draw(t, "text")
	put := func(make func() error) {
		for dir := filepath.Dir(path); dir != w.path; dir = filepath.Dir(dir) {
			if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
				must(t, os.Remove(dir))
			}
		}
		must(t, os.RemoveAll(path))
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, make())
	}
	switch op := rapid.SampledFrom([]string{
		"write", "write", "write", "program", "link", "remove", "remove", "add", "add", "add all", "intend", "forget", "commit", "stash", "stash untracked", "assume", "skip",
		"switch", "detach", "stale",
	}).Draw(t, "op"); op {
	case "write":
		put(func() error { return os.WriteFile(path, []byte(text), 0o600) })
	case "program":
		put(func() error { return os.WriteFile(path, []byte(text), 0o700) })
	case "link":
		to := rapid.SampledFrom([]string{"a", "d", "/nowhere", "..", "-x\ny"}).Draw(t, "to")
		put(func() error { return os.Symlink(to, path) })
	case "remove":
		if err := os.RemoveAll(path); !errors.Is(err, syscall.ENOTDIR) { // a file is where its folder was
			must(t, err)
		}
	case "add":
		w.try(w.path, "add", "-f", "--", name)
	case "add all":
		w.try(w.path, "add", "-A")
	case "intend":
		w.try(w.path, "add", "-N", "-f", "--", name)
	case "forget":
		w.try(w.path, "rm", "-q", "-f", "--cached", "--", name)
	case "commit":
		w.try(w.path, "commit", "-q", "--allow-empty", "-m", fmt.Sprint("commit ", n))
	case "stash":
		w.try(w.path, "stash", "push", "-q", "-m", "it's $(x) "+fmt.Sprint(n))
	case "stash untracked":
		w.try(w.path, "stash", "push", "-q", "-u")
	case "assume":
		w.try(w.path, "update-index", "--assume-unchanged", "--", name)
	case "skip":
		w.try(w.path, "update-index", "--skip-worktree", "--", name)
	case "switch":
		w.try(w.path, "checkout", "-q", "-b", fmt.Sprintf("%s-%d", w.branch, n))
	case "detach":
		w.try(w.path, "checkout", "-q", "--detach")
	case "stale": // git is told that nothing has changed
		w.stale = true
		w.try(w.path, "config", "core.autocrlf", rapid.SampledFrom([]string{"true", "input", "false"}).Draw(t, "autocrlf"))
	}
}

// What was saved is in the repository of this host before its workspace goes, and comes back as it was: content, modes,
// links, index, stashes, references and untracked files, whatever their names.
//
// row A41, of saves
// row A42, of saves
func TestWhatIsSavedComesBack(t *testing.T) {
	for name, place := range map[string]spec.Address{"worktree": spec.ThisHost, "guest": {Kind: spec.VM, Name: "dev"}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, place)
			limitCases(t, 6)
			rapid.Check(t, func(t *rapid.T) {
				w := b.workspace()
				w.create(t)
				for n := range rapid.IntRange(1, 14).Draw(t, "changes") {
					w.mess(t, n)
				}
				ignored := rapid.Bool().Draw(t, "ignored")
				before := w.picture(t, ignored)
				saved, err := w.saver().Save(b.t.Context(), w.id, workspace.SaveOptions{Ignored: ignored})
				var refused *workspace.RefusedError
				if errors.As(err, &refused) && strings.Contains(refused.Why, "git add -N") {
					b.drop(t, w)
					return
				}
				must(t, err)
				if diff := cmp.Diff(before, w.picture(t, ignored)); diff != "" {
					t.Fatalf("saving changed the workspace (-before +after):\n%s", diff)
				}
				b.drop(t, w)
				w.create(t)
				got, err := w.saver().Restore(b.t.Context(), w.id, workspace.RestoreOptions{})
				must(t, err)
				if got.Ref != saved.Ref {
					t.Fatalf("%s was saved, %s restored", saved.Ref, got.Ref)
				}
				after := w.picture(t, ignored)
				if w.stale { // git took files for unchanged by their time alone, and looks into those that are restored
					delete(before, "status")
					delete(after, "status")
				}
				if diff := cmp.Diff(before, after); diff != "" {
					t.Fatalf("work (-saved +restored):\n%s", diff)
				}
				b.drop(t, w)
				b.try(b.repo, "stash", "clear")
			})
			b.git(t, b.repo, "fsck", "--strict")
		})
	}
}

// drop removes a workspace with all that is in it, and a worktree's own stashes and settings.
func (b *bench) drop(t fataler, w *work) {
	t.Helper()
	err := w.do("discard", providers.PhaseRemove)
	must(t, err)
	b.try(b.repo, "config", "--unset", "core.autocrlf")
}
