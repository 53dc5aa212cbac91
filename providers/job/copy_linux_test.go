package job_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"vmctl/internal/gitx"
	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/job"
)

// runGit runs git in a folder, with an identity and without the settings of the user.
func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "core.hooksPath=/dev/null"}, args...)...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, dir, name, target string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// dirty makes a repository with files that are committed, on a branch, staged, unstaged, untracked and ignored, and with
// symbolic links inside and out. It returns the commit that the branch began at.
func dirty(t *testing.T) (dir, base string) {
	t.Helper()
	dir = t.TempDir()
	runGit(t, dir, "init", "-q", "-b", "main")
	writeFile(t, dir, ".gitignore", ".env\n")
	writeFile(t, dir, "old", "old\n")
	writeFile(t, dir, "sub/unstaged", "committed\n")
	writeFile(t, dir, "gone", "gone\n")
	link(t, dir, "inside", "sub/unstaged")
	link(t, dir, "link", "/etc")
	link(t, dir, "sub/up", "../../outside")
	link(t, dir, "here", ".")
	link(t, dir, "round", "here/../x")
	runGit(t, dir, "add", "-A")
	runGit(t, dir, "commit", "-q", "-m", "one")
	base = runGit(t, dir, "rev-parse", "HEAD")
	writeFile(t, dir, "branch", "branch\n")
	link(t, dir, "branchlink", "/etc/passwd")
	runGit(t, dir, "add", "-A")
	runGit(t, dir, "commit", "-q", "-m", "two")
	writeFile(t, dir, "staged", "staged\n")
	link(t, dir, "stagedlink", "/etc")
	runGit(t, dir, "add", "staged", "stagedlink")
	writeFile(t, dir, "staged", "staged, and more\n")
	writeFile(t, dir, "sub/unstaged", "unstaged\n")
	writeFile(t, dir, "untracked", "untracked\n")
	writeFile(t, dir, ".env", "SECRET=1\n")
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	return dir, base
}

// contained prepares a job that runs in a copy.
func contained(t *testing.T, s job.Store, id job.ID, scope job.Scope, base string) func() {
	return func() {
		_, err := s.Update(t.Context(), id, func(r *job.Record) error {
			r.Containment, r.Scope, r.Base = "worktree", scope, base
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// leftNothing returns the record of a job that has ended, and checks that nothing private to its run is left.
func leftNothing(t *testing.T, s job.Store, id job.ID) job.Record {
	t.Helper()
	r, err := s.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"copy", "base", "tmp"} {
		if _, err := os.Lstat(s.Path(id, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	return r
}

// listing prints the files of a folder with what is in them. It is a shell script without paths of this host.
const listing = `find . ! -type d | LC_ALL=C sort | while read -r f; do
  if [ -L "$f" ]; then echo "$f -> $(readlink "$f")"; else echo "$f: $(cat "$f")"; fi
done`

// aCopy is a job that runs a shell script in a copy of its workspace.
type aCopy struct {
	id                job.ID
	dir, script, base string
	scope             job.Scope
}

// place is where a job runs in a copy.
type place string

// places lists them all.
func places() []place { return []place{"host", "vm"} }

// run runs a job to its end, and checks that nothing private to its run is left.
func (p place) run(t *testing.T, s job.Store, c aCopy) job.Record {
	t.Helper()
	if p == "host" {
		workerEnds(t, start(t, s, c.id, c.dir, c.script, contained(t, s, c.id, c.scope, c.base)))
		return leftNothing(t, s, c.id)
	}
	home := t.TempDir()
	inside(t, s, c)
	workInside(t, s, c.id, onHost(home))
	if _, err := os.Lstat(home + "/.vmctl"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of vmctl in the VM is left: %v", err)
	}
	return leftNothing(t, s, c.id)
}

// inside makes a job in a VM.
func inside(t *testing.T, s job.Store, c aCopy) {
	t.Helper()
	r, err := s.Create(job.Record{
		ID: c.id, Agent: job.Plain, Command: []string{"sh", "-c", c.script}, Dir: c.dir, Grace: job.Duration(time.Minute), Created: time.Now(),
		Inside: "vm.dev", Workspace: "workspace.w", Containment: job.InCopy, Scope: c.scope, Base: c.base,
	})
	if err := errors.Join(err, s.WritePrompt(c.id, nil)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, r) })
}

// row J70
// row J68, of the scopes
func TestEachScopeShowsExactlyItsPart(t *testing.T) {
	for scope, want := range map[job.Scope]string{
		"working-tree": "./.gitignore: .env\n./branch: branch\n./here -> .\n./inside -> sub/unstaged\n./old: old\n./staged: staged, and more\n" +
			"./sub/unstaged: unstaged\n./untracked: untracked\n",
		"staged":      "./staged: staged\n",
		"branch-diff": "./branch: branch\n",
		"head": "./.gitignore: .env\n./branch: branch\n./gone: gone\n./here -> .\n./inside -> sub/unstaged\n./old: old\n" +
			"./sub/unstaged: committed\n",
	} {
		for _, p := range places() {
			t.Run(string(scope)+" "+string(p), func(t *testing.T) {
				t.Parallel()
				dir, base := dirty(t)
				before := runGit(t, dir, "status", "--porcelain", "--ignored")
				s := withGit(t)
				id := job.ID("j-scope-" + string(scope) + "-" + string(p))
				r := p.run(t, s, aCopy{id: id, dir: dir, script: listing + "\necho new >written; rm -f branch staged", scope: scope, base: base})
				if diff := cmp.Diff(want, has(t, s.Path(id, ""), "stdout")); diff != "" || r.Status != job.Completed {
					t.Errorf("%s (%s): listing (-want +got):\n%s", r.Status, r.Reason, diff)
				}
				if after := runGit(t, dir, "status", "--porcelain", "--ignored"); after != before {
					t.Errorf("the workspace (-before +after):\n%s", cmp.Diff(before, after))
				}
				if !slices.Contains(r.Edits, job.Edit{Path: "written", Kind: job.Added}) || r.EditCounts[job.Added] != 1 || len(r.Changed) != 0 {
					t.Errorf("edits %v, counts %v, changed %v", r.Edits, r.EditCounts, r.Changed)
				}
				record, err := os.ReadFile(s.Path(id, "record.json"))
				if err != nil || strings.Contains(string(record), "SECRET") || strings.Contains(string(record), "/etc") {
					t.Errorf("the record (%v):\n%s", err, record)
				}
			})
		}
	}
}

// written is a job that writes into its copy.
type written struct {
	script  string
	status  job.Status
	changed []string // of the workspace itself
}

// row J58, of what runs
func TestAJobInACopyWritesThereAlone(t *testing.T) {
	for name, test := range map[string]written{
		"it completes": {"echo more >>old; rm untracked; ln -s old sub/l; mkdir locked; : >locked/f; echo a >$TMPDIR/a; chmod 500 locked", job.Completed, []string{}},
		"it fails":     {"echo more >>old; rm untracked; ln -s old sub/l; mkdir locked; : >locked/f; exit 3", job.Failed, []string{}},
		"the workspace changes meanwhile": {
			`echo more >>old; rm untracked; ln -s old sub/l; mkdir locked; : >locked/f; echo x >"$WORKSPACE"/untracked`,
			job.Completed,
			[]string{"untracked"},
		},
	} {
		writesThereAlone(t, "host", name, test)
		writesThereAlone(t, "vm", name, test)
	}
}

func writesThereAlone(t *testing.T, p place, name string, test written) {
	t.Run(name+" "+string(p), func(t *testing.T) {
		t.Parallel()
		dir, _ := dirty(t)
		s := withGit(t)
		id := job.ID("j-copy-" + strings.ReplaceAll(name, " ", "-") + "-" + string(p))
		script := `[ "$(stat -c %a "$TMPDIR")" = 700 ] || exit 9` + "\nWORKSPACE='" + dir + "'\n" + test.script
		r := p.run(t, s, aCopy{id: id, dir: dir, script: script, scope: job.WorkingTree})
		if r.Status != test.status {
			t.Errorf("it is %s (%s), want %s", r.Status, r.Reason, test.status)
		}
		want := []job.Edit{{"locked/f", job.Added}, {"old", job.Edited}, {"sub/l", job.Added}, {"untracked", job.Removed}}
		if diff := cmp.Diff(want, r.Edits); diff != "" {
			t.Errorf("edits (-want +got):\n%s\n%q", diff, r.Warnings)
		}
		if diff := cmp.Diff(test.changed, r.Changed); diff != "" {
			t.Errorf("changed (-want +got):\n%s", diff)
		}
		patch, err := os.ReadFile(s.Path(id, "patch"))
		if err != nil || !r.Patch || !strings.Contains(string(patch), "+more\n") {
			t.Errorf("the patch is kept: %t, %v\n%s", r.Patch, err, patch)
		}
		if warned := strings.Contains(strings.Join(r.Warnings, "\n"), "workspace itself changed"); warned != (len(test.changed) > 0) {
			t.Errorf("warnings %q", r.Warnings)
		}
	})
}

// A name that another system would take for one of git's own is a name here: the patch has it.
func TestEditsOfNamesOfOtherSystems(t *testing.T) {
	for _, p := range places() {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			dir, _ := dirty(t)
			if err := os.WriteFile(filepath.Join(dir, "git~2"), []byte("before\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			s := withGit(t)
			id := job.ID("j-names-" + string(p))
			r := p.run(t, s, aCopy{id: id, dir: dir, script: "echo new >git~1; echo after >git~2", scope: job.WorkingTree})
			want := []job.Edit{{"git~1", job.Added}, {"git~2", job.Edited}}
			if diff := cmp.Diff(want, r.Edits); diff != "" || r.Status != job.Completed {
				t.Errorf("%s (%s): edits (-want +got):\n%s\n%q", r.Status, r.Reason, diff, r.Warnings)
			}
			if patch := has(t, s.Path(id, ""), "patch"); !strings.Contains(patch, "+new\n") || !strings.Contains(patch, "+after\n") {
				t.Errorf("the patch:\n%s", patch)
			}
		})
	}
}

// row J68, of a git that fails
func TestWithoutGitNoCopyIsMade(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	id := job.ID("j-no-git")
	dir, _ := dirty(t)
	writeFile(t, dir, ".git/index", "broken")
	ran := filepath.Join(t.TempDir(), "ran")
	worker := start(t, s, id, dir, ": >"+ran, contained(t, s, id, "working-tree", ""))
	workerEnds(t, worker)
	r := leftNothing(t, s, id)
	if r.Status != job.Failed || r.ErrorCode != job.CopyFailed || !strings.Contains(r.Reason, "list the files of the scope working-tree: git ls-files") {
		t.Errorf("it is %s, %s: %s", r.Status, r.ErrorCode, r.Reason)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command ran")
	}
}

// gitFails is git on this host; it cannot say so many times which files are ignored, and notes each.
type gitFails struct {
	note string // a file with a line for each time that it was asked
	most int
}

func (g gitFails) Run(ctx context.Context, c gitx.Command) (gitx.Output, error) {
	if !slices.Contains(c.Args, "ls-files") || !slices.Contains(c.Args, "--cached") {
		return gitHere{}.Run(ctx, c)
	}
	text, err := os.ReadFile(g.note)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return gitx.Output{}, err
	}
	if err := os.WriteFile(g.note, append(text, "asked\n"...), 0o600); err != nil {
		return gitx.Output{}, err
	}
	if strings.Count(string(text), "\n") < g.most {
		return gitx.Output{Status: 128, Stderr: "fatal: it does not say"}, nil
	}
	return gitHere{}.Run(ctx, c)
}

// Git is asked three times which files are ignored. If it never says, the job is refused.
//
// row J68, of the tries
func TestGitIsAskedThreeTimes(t *testing.T) {
	for phase, want := range map[string]struct {
		status job.Status
		code   job.ErrorCode
	}{"fails 2": {job.Completed, ""}, "fails 3": {job.Failed, job.CopyFailed}} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			s := withGit(t)
			id := job.ID("j-" + strings.ReplaceAll(phase, " ", "-"))
			dir, _ := dirty(t)
			ran := filepath.Join(t.TempDir(), "ran")
			workerEnds(t, startAs(t, s, id, dir, ": >"+ran, phase, contained(t, s, id, "working-tree", "")))
			r := leftNothing(t, s, id)
			if r.Status != want.status || r.ErrorCode != want.code {
				t.Errorf("it is %s %s: %s", r.Status, r.ErrorCode, r.Reason)
			}
			if _, err := os.Stat(ran); err == nil != (want.status == job.Completed) {
				t.Errorf("it ran: %v", err)
			}
			if asked := strings.Count(has(t, s.Path(id, ""), "asked"), "\n"); asked != 3 {
				t.Errorf("git was asked %d times, want 3", asked)
			}
		})
	}
}

// What ends the record of a job removes its copy, unless its command may have run there and what it changed is kept nowhere else:
// as in the copy of an earlier version of vmctl, which does not say how it was at the beginning.
func TestTheEndOfARecordRemovesTheCopy(t *testing.T) {
	for name, test := range map[string]struct {
		started time.Time
		git     gitx.Runner
		mark    string
		why     string // the copy stays; "": it does not
	}{
		"nothing ran":                 {git: gitHere{}},
		"nothing ran, without git":    {},
		"of an earlier version":       {started: noon, git: gitHere{}, why: "how it was at the beginning is not known"},
		"it ran, without git":         {mark: strings.Repeat("a", 40), why: "git is not there to compare it"},
		"its mark is an option":       {mark: "--output=/x", git: gitHere{}, why: `"--output=/x" is no tree of git`},
		"its repository is no longer": {mark: strings.Repeat("a", 40), git: gitHere{}, why: "/base/repository: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}, Git: test.git}
			id := job.ID("j-killed-copy")
			record(t, s, id, job.Running, func(r *job.Record) { r.Worker, r.Started = &process.Identity{PID: 7}, test.started })
			for _, name := range []string{"copy/tree", "tmp"} {
				writeFile(t, s.Path(id, name), "f", "a")
			}
			if test.mark != "" {
				writeFile(t, s.Path(id, "base"), "tree", test.mark+"\n")
			}
			closed, failed, err := s.ReconcileAll(t.Context(), job.Observer{Processes: host{}, Now: noon})
			if err != nil || len(failed) > 0 || len(closed) != 1 {
				t.Fatalf("closed %d, failed %v, %v", len(closed), failed, err)
			}
			if test.why == "" {
				leftNothing(t, s, id)
			} else if l := closed[0].LeftCopy; l == nil || !strings.Contains(l.Reason, test.why) || has(t, s.Path(id, "copy/tree"), "f") != "a" {
				t.Errorf("the copy that is left: %v, want %s", l, test.why)
			}
		})
	}
}

// gitCopies is git on this host, during which the end of the job is asked for: it lists no files of a workspace.
type gitCopies struct {
	store job.Store
	id    job.ID
	told  *bool // the worker has told that it is ready
}

func (g gitCopies) Run(ctx context.Context, c gitx.Command) (gitx.Output, error) {
	if !slices.Contains(c.Args, "ls-files") {
		return gitHere{}.Run(ctx, c)
	}
	if !*g.told {
		return gitx.Output{}, errors.New("whoever starts the job still waits")
	}
	if _, err := g.store.Update(ctx, g.id, func(r *job.Record) error { return job.Ask(r, job.Cancel{By: "test", At: time.Now()}) }); err != nil {
		return gitx.Output{}, err
	}
	<-ctx.Done()
	return gitx.Output{}, ctx.Err()
}

// Nobody who starts a job waits for its copy, and a cancel does not either.
//
// row J18
// row J58, of a job that is cancelled before it ran
func TestEndIsAskedForDuringTheCopy(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	dir, _ := dirty(t)
	ran := filepath.Join(t.TempDir(), "ran")
	workerEnds(t, startAs(t, s, "j-copies", dir, ": >"+ran, "copies", contained(t, s, "j-copies", "working-tree", "")))
	if r := leftNothing(t, s, "j-copies"); r.Status != job.Cancelled {
		t.Errorf("it is %s (%s, %s), want cancelled", r.Status, r.ErrorCode, r.Reason)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command ran")
	}
}

// A job whose folder is below the top of its repository runs in the same folder of its copy, also if the scope has nothing there.
func TestACopyHasTheFolderOfItsJob(t *testing.T) {
	for scope, want := range map[job.Scope]string{"working-tree": "sub\n./inside\n./unstaged\n", "staged": "sub\n"} {
		for _, p := range places() {
			t.Run(string(scope)+" "+string(p), func(t *testing.T) {
				t.Parallel()
				dir, _ := dirty(t)
				link(t, dir, "sub/inside", "unstaged")
				s := withGit(t)
				id := job.ID("j-below-" + string(scope) + "-" + string(p))
				r := p.run(t, s, aCopy{id: id, dir: filepath.Join(dir, "sub"), script: `basename "$PWD"; find . ! -type d | LC_ALL=C sort`, scope: scope})
				if out := has(t, s.Path(id, ""), "stdout"); out != want || r.Status != job.Completed {
					t.Errorf("%s (%s): it saw %q, want %q", r.Status, r.Reason, out, want)
				}
			})
		}
	}
}

// A worker that is killed while it copies leaves the copy; reconcile ends the record, and removes it.
//
// row J58, of a worker that was killed
func TestAWorkerIsKilledWhileItCopies(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	dir, _ := dirty(t)
	_, err := s.Create(job.Record{ID: "j-filling", Agent: job.Plain, Command: []string{"true"}, Dir: dir, Created: time.Now(), Containment: "worktree", Scope: "head"})
	if err := errors.Join(err, s.WritePrompt("j-filling", nil)); err != nil {
		t.Fatal(err)
	}
	worker, _ := play(t, s, "j-filling", "filling")
	if _, err := os.Stat(s.Path("j-filling", "copy")); err != nil {
		t.Fatalf("the copy is not begun: %v", err)
	}
	kill(t, worker)
	o := job.Observer{Processes: process.Host{}, Now: time.Now()}
	if closed, failed, err := s.ReconcileAll(t.Context(), o); err != nil || len(failed) > 0 || len(closed) != 1 {
		t.Fatalf("reconcile: %v, %v, %v", closed, failed, err)
	}
	if r := leftNothing(t, s, "j-filling"); r.Status != job.Stale {
		t.Errorf("it is %s: %s", r.Status, r.Reason)
	}
}

// gitStays is git on this host; once over is there, a command of it never ends, and says that it is there.
type gitStays struct {
	command, over string
	stay          func()
}

func (g gitStays) Run(ctx context.Context, c gitx.Command) (gitx.Output, error) {
	if _, err := os.Stat(g.over); err == nil && slices.Contains(c.Args, g.command) {
		g.stay()
	}
	return gitHere{}.Run(ctx, c)
}

// What a job changed is told whatever it made in its copy: repositories of its own, and what nobody may read.
func TestEditsBesideARepositoryInTheCopy(t *testing.T) {
	const inner = "git -c init.defaultBranch=main init -q empty; : >empty/file; git -c init.defaultBranch=main init -q full; echo x >full/file; " +
		"git -C full add file; git -C full -c user.name=a -c user.email=a@example.com commit -q -m x; mkdir closed; : >closed/file; chmod 000 closed/file closed; echo more >>old"
	for _, p := range places() {
		s := withGit(t)
		dir, _ := dirty(t)
		r := p.run(t, s, aCopy{id: "j-nested", dir: dir, script: inner, scope: job.Head})
		want := []job.Edit{{"closed/file", job.Added}, {"empty/file", job.Added}, {"full/file", job.Added}, {"old", job.Edited}}
		if diff := cmp.Diff(want, r.Edits); diff != "" || !r.Patch {
			t.Errorf("%s: patch %t, edits (-want +got):\n%s\n%q", p, r.Patch, diff, r.Warnings)
		}
		if text := strings.Join(r.Warnings, "\n"); !strings.Contains(text, `["empty" "full"]`) {
			t.Errorf("%s: warnings %q", p, text)
		}
	}
}

// Files that the job made and git ignores are counted, and are neither edits nor in the patch: those of its own rules, of the
// repository's, and of the workspace's files. What the copy began with is told whatever the rules say.
func TestIgnoredFilesAreCounted(t *testing.T) {
	for _, p := range places() {
		t.Run(string(p), func(t *testing.T) { ignoredFilesAreCounted(t, p) })
	}
}

func ignoredFilesAreCounted(t *testing.T, p place) {
	s := withGit(t)
	dir, _ := dirty(t)
	writeFile(t, dir, ".git/info/exclude", "built\n")
	const script = "mkdir -p modules/a sub/built; echo big >modules/a/one; echo big >modules/two; echo x >.env; echo x >sub/built/f; echo x >'sub/a\nb'; " +
		"printf 'modules\\nold\\n' >>.gitignore; echo more >>old; mkfifo sub/.gitignore modules/.gitattributes"
	r := p.run(t, s, aCopy{id: "j-ignored", dir: dir, script: script, scope: job.WorkingTree})
	want := []job.Edit{{".gitignore", job.Edited}, {"old", job.Edited}, {"sub/a\nb", job.Added}}
	if diff := cmp.Diff(want, r.Edits); diff != "" || r.Ignored != 4 {
		t.Errorf("%d ignored, want 4; edits (-want +got):\n%s\n%q, left %+v", r.Ignored, diff, r.Warnings, r.LeftCopy)
	}
	if patch := has(t, s.Path("j-ignored", ""), "patch"); strings.Contains(patch, "big") || !strings.Contains(patch, "+more\n") {
		t.Errorf("the patch:\n%s", patch)
	}
}

// What a job does beside its copy leads vmctl's own git nowhere else: neither the repository of the workspace nor its files are
// changed, and what the job changed is told or stays.
func TestAJobReachesBesideItsCopy(t *testing.T) {
	for name, test := range map[string]struct{ script, stays string }{
		"a repository in place of that beside it": {script: "rm -rf ../base.git; ln -s WORKSPACE/.git ../base.git"},
		"a place for repositories":                {script: "ln -s WORKSPACE ../repositories; git -c init.defaultBranch=main init -q inner; rmdir inner/.git/branches; mkdir x"},
		"the workspace in place of its tree":      {script: "mv ../tree ../mine; ln -s WORKSPACE ../tree; cd ../mine", stays: "copy/tree is no folder any more"},
		"the workspace in place of its copy":      {script: "mv ../../copy ../../mine; ln -s WORKSPACE ../../copy", stays: "copy is no folder any more"},
		"another repository":                      {script: "rm -rf ../../base/repository; ln -s WORKSPACE/.git ../../base/repository", stays: "base/repository is no folder any more"},
		"another index":                           {script: "cd ../../base/repository; rm index; ln -s WORKSPACE/.git/index index; cd ../../copy/tree", stays: "base/repository/index leads elsewhere"},
		"another store of objects":                {script: "cd ../../base/repository; mv objects o; ln -s WORKSPACE/.git/objects objects; cd ../../copy/tree", stays: "objects is no folder any more"},
		"a common folder":                         {script: "echo WORKSPACE/.git >../../base/repository/commondir", stays: "commondir leads elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withGit(t)
			id := job.ID("j-" + strings.ReplaceAll(name, " ", "-"))
			dir, _ := dirty(t)
			state := func() string {
				return runGit(t, dir, "ls-files", "--stage") + "\n" + runGit(t, dir, "status", "--porcelain", "--ignored") + "\n" + strings.Join(files(t, dir), "\n")
			}
			before := state()
			workerEnds(t, start(t, s, id, dir, strings.ReplaceAll(test.script, "WORKSPACE", dir)+"; echo more >>old", contained(t, s, id, "working-tree", "")))
			if diff := cmp.Diff(before, state()); diff != "" {
				t.Errorf("the workspace (-before +after):\n%s", diff)
			}
			if test.stays != "" {
				r, err := s.Read(id)
				if err != nil || r.Status != job.Completed || r.LeftCopy == nil || !strings.Contains(r.LeftCopy.Reason, test.stays) || r.Edits != nil {
					t.Errorf("it is %s: %s, left %+v, %v", r.Status, r.Reason, r.LeftCopy, err)
				}
				return
			}
			if r := leftNothing(t, s, id); r.Status != job.Completed || !slices.Contains(r.Edits, job.Edit{Path: "old", Kind: job.Edited}) {
				t.Errorf("it is %s: %s, edits %v, left %+v", r.Status, r.Reason, r.Edits, r.LeftCopy)
			}
		})
	}
}

// A link that leads to nothing is one inside of the workspace, also where a file is on its way.
func TestDanglingLinksAreCopied(t *testing.T) {
	for _, p := range places() {
		s := withGit(t)
		dir, _ := dirty(t)
		link(t, dir, "dangling", "old/x")
		link(t, dir, "nowhere", "none/x")
		link(t, dir, "mutual", "mutual")
		link(t, dir, "back", "here/here/sub/../old")
		r := p.run(t, s, aCopy{id: "j-links", dir: dir, script: "ls -d dangling nowhere back mutual link; :", scope: job.WorkingTree})
		if out := has(t, s.Path("j-links", ""), "stdout"); out != "back\ndangling\nnowhere\n" {
			t.Errorf("%s: it sees %q", p, out)
		}
		// link, sub/up, branchlink, stagedlink and round lead out, and mutual has no end.
		if text := strings.Join(r.Warnings, "\n"); !strings.Contains(text, "symbolic links that lead out of its workspace, or through many others, are not in its copy: 6") {
			t.Errorf("%s: warnings %q", p, text)
		}
	}
}

// Files of any name come into a copy as they are, and what a job does to them is told: names that programs take for options, and with
// what shells, git and lists of names split or quote. One behind a link that took the place of a folder is left out.
func TestFilesOfAnyName(t *testing.T) {
	names := []string{"-rf", "--stdin", "a\nb", "a b", `a"b`, `a\b`, "a'b", "$(touch x)", "*", "\xff\xfe", "é", ":(top)x", "[", "!", "(", "=", "~", "\ttab"}
	for _, scope := range []job.Scope{job.WorkingTree, job.Head} {
		for _, p := range places() {
			t.Run(string(scope)+" "+string(p), func(t *testing.T) {
				t.Parallel()
				dir, _ := dirty(t)
				for _, name := range names {
					writeFile(t, dir, name, "text of "+name)
					writeFile(t, dir, "d/"+name+"/f", "text below "+name)
				}
				runGit(t, dir, "add", "-A")
				runGit(t, dir, "commit", "-q", "-m", "names")
				writeFile(t, dir, "hidden/f", "hidden\n")
				writeFile(t, dir, "was/f", "was\n")
				runGit(t, dir, "add", "-A")
				if err := errors.Join(os.Rename(filepath.Join(dir, "was"), filepath.Join(dir, ".git", "was")), os.Symlink("hidden", filepath.Join(dir, "was"))); err != nil {
					t.Fatal(err)
				}
				s := withGit(t)
				const script = `ls was; find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sh -c 'for f do printf "%s: %s;" "$f" "$(cat "./$f")"; echo more >>"$f"; done' sh; rm -rf d`
				id := job.ID("j-names-" + string(scope) + "-" + string(p))
				r := p.run(t, s, aCopy{id: id, dir: dir, script: script, scope: scope})
				out := has(t, s.Path(id, ""), "stdout")
				var want []job.Edit
				for _, name := range names {
					for path, text := range map[string]string{"./" + name: "text of " + name, "./d/" + name + "/f": "text below " + name} {
						if !strings.Contains(out, path+": "+text+";") {
							t.Errorf("%q is not in the copy as it is", path)
						}
					}
					want = append(want, job.Edit{Path: name, Kind: job.Edited}, job.Edit{Path: "d/" + name + "/f", Kind: job.Removed})
				}
				for _, edit := range want {
					edit.Path = strings.ToValidUTF8(edit.Path, "\ufffd\ufffd")
					if !slices.Contains(r.Edits, edit) {
						t.Errorf("edits without %q", edit)
					}
				}
				if r.Status != job.Completed || r.LeftCopy != nil || strings.Contains(out, "was/f") {
					t.Errorf("it is %s: %s, left %v, and sees %q", r.Status, r.Reason, r.LeftCopy, out)
				}
			})
		}
	}
}

// What a job in a VM does beside its copy leads the git of the VM nowhere else, and its copy stays until it can be kept.
func TestAJobInAVMReachesBesideItsCopy(t *testing.T) {
	for name, test := range map[string]struct{ script, stays string }{
		"the workspace in place of its tree": {"mv ../tree ../mine; ln -s WORKSPACE ../tree; cd ../mine", "tree is no folder any more: its job replaced it"},
		"the workspace in place of its copy": {"c=$(cd ..; pwd); mv \"$c\" \"$c.mine\"; ln -s WORKSPACE \"$c\"; cd \"$c.mine\"/tree", "is no folder any more: its job replaced it"},
		"another repository":                 {"rm -rf ../repository; ln -s WORKSPACE/.git ../repository", "repository is no folder any more: its job replaced it"},
		"another index":                      {"rm ../repository/index; ln -s WORKSPACE/.git/index ../repository/index", "repository leads elsewhere: its job made it"},
		"a common folder":                    {"echo WORKSPACE/.git >../repository/commondir", "repository leads elsewhere: its job made it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withGit(t)
			id := job.ID("j-vm-" + strings.ReplaceAll(name, " ", "-"))
			dir, _ := dirty(t)
			before := runGit(t, dir, "ls-files", "--stage") + strings.Join(files(t, dir), "\n")
			inside(t, s, aCopy{id: id, dir: dir, script: strings.ReplaceAll(test.script, "WORKSPACE", dir) + "; echo more >>old", scope: job.WorkingTree})
			home := t.TempDir()
			r := workInside(t, s, id, onHost(home))
			if diff := cmp.Diff(before, runGit(t, dir, "ls-files", "--stage")+strings.Join(files(t, dir), "\n")); diff != "" {
				t.Errorf("the workspace (-before +after):\n%s", diff)
			}
			if l := r.LeftCopy; r.Status != job.Completed || l == nil || l.Inside != "vm.dev" || !strings.Contains(l.Reason, test.stays) || r.Edits != nil {
				t.Errorf("it is %s: %s, left %+v", r.Status, r.Reason, r.LeftCopy)
			}
			if err := os.RemoveAll(filepath.Join(home, ".vmctl/copies", string(id))); err != nil {
				t.Fatal(err)
			}
			w := job.GuestWorker{Store: s, ID: id, Guest: onHost(home), Now: time.Now}
			if err := w.Collect(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r := leftNothing(t, s, id); r.LeftCopy != nil || !slices.Contains(r.Warnings, "its copy in vm.dev is gone, and what it changed there was not kept") {
				t.Errorf("left %+v, warnings %q", r.LeftCopy, r.Warnings)
			}
		})
	}
}

// asksDuringCopy is a guest in which the end of a job is asked for while its copy is made.
type asksDuringCopy struct {
	providers.Guest
	ask func()
}

func (g asksDuringCopy) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	if slices.Contains(c.Args, "checkout-index") {
		g.ask()
		<-ctx.Done()
	}
	return g.Guest.Run(ctx, c)
}

// row J18, of a job in a VM
func TestEndIsAskedForDuringTheCopyInAVM(t *testing.T) {
	s := withGit(t)
	dir, _ := dirty(t)
	ran := filepath.Join(t.TempDir(), "ran")
	inside(t, s, aCopy{id: "j-asked-vm", dir: dir, script: ": >" + ran, scope: job.WorkingTree})
	home := t.TempDir()
	workInside(t, s, "j-asked-vm", asksDuringCopy{onHost(home), func() {
		if _, err := s.Update(t.Context(), "j-asked-vm", func(r *job.Record) error { return job.Ask(r, job.Cancel{By: "test", At: time.Now()}) }); err != nil {
			t.Error(err)
		}
	}})
	if r := leftNothing(t, s, "j-asked-vm"); r.Status != job.Cancelled || r.LeftCopy != nil {
		t.Errorf("it is %s: %s, left %+v", r.Status, r.Reason, r.LeftCopy)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command ran")
	}
	if _, err := os.Lstat(home + "/.vmctl"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the copy in the VM is left: %v", err)
	}
}

// asksDuringLook is a guest in which the end of a job is asked for while its worker looks at its folder.
type asksDuringLook struct {
	providers.Guest
	ask func()
}

func (g asksDuringLook) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	if slices.Contains(c.Args, "--porcelain=v2") {
		g.ask()
	}
	return g.Guest.Run(ctx, c)
}

// row J18, of a job in a workspace of a VM
func TestEndIsAskedForDuringTheLookInAVM(t *testing.T) {
	s := withGit(t)
	dir, _ := dirty(t)
	ran, home := filepath.Join(t.TempDir(), "ran"), t.TempDir()
	r, err := s.Create(job.Record{
		ID: "j-look-vm", Agent: job.Plain, Command: []string{"sh", "-c", ": >" + ran}, Dir: dir, Grace: job.Duration(time.Minute), Created: time.Now(),
		Inside: "vm.dev", Workspace: "workspace.w",
	})
	if err := errors.Join(err, s.WritePrompt(r.ID, nil)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, r) })
	ask := sync.OnceFunc(func() {
		if _, err := s.Update(t.Context(), r.ID, func(r *job.Record) error { return job.Ask(r, job.Cancel{By: "test", At: time.Now()}) }); err != nil {
			t.Error(err)
		}
	})
	w := job.GuestWorker{Store: s, ID: r.ID, Guest: asksDuringLook{onHost(home), ask}, Now: time.Now, Ready: func(error) {}}
	if err := w.Run(t.Context(), func() error { return nil }); err != nil {
		t.Error(err)
	}
	if r, err = s.Read(r.ID); err != nil || r.Status != job.Cancelled || !r.Started.IsZero() {
		t.Errorf("it is %s: %s, started %s: %v", r.Status, r.Reason, r.Started, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command ran")
	}
}

// lostDuringCopy is a guest that is lost while the copy of a job is made.
type lostDuringCopy struct {
	providers.Guest
	lost *bool
}

func (g lostDuringCopy) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	if *g.lost = *g.lost || slices.Contains(c.Args, "checkout-index"); *g.lost {
		return providers.Output{}, &providers.FateError{Program: c.Args[0], Err: errors.New("the connection was lost")}
	}
	return g.Guest.Run(ctx, c)
}

// A VM that is lost while a copy is made there keeps what there is of it, and the record says so, until the VM can be reached again.
//
// row J58, of a VM that is lost
func TestAVMIsLostDuringTheCopy(t *testing.T) {
	s := withGit(t)
	dir, _ := dirty(t)
	inside(t, s, aCopy{id: "j-lost-vm", dir: dir, script: ":", scope: job.WorkingTree})
	home := t.TempDir()
	w := job.GuestWorker{Store: s, ID: "j-lost-vm", Guest: lostDuringCopy{onHost(home), new(bool)}, Now: time.Now, Ready: func(error) {}}
	if err := w.Run(t.Context(), func() error { return nil }); err == nil {
		t.Error("the folder of the job in the VM was removed")
	}
	r, err := s.Read("j-lost-vm")
	if err != nil {
		t.Fatal(err)
	}
	if l := r.LeftCopy; r.ErrorCode != job.CopyFailed || l == nil || l.Path != "~/.vmctl/copies/j-lost-vm" ||
		!strings.Contains(l.Reason, `it cannot be removed: run "sh": it is unknown what it did: the connection was lost`) {
		t.Errorf("it is %s, %s: %s, left %+v", r.Status, r.ErrorCode, r.Reason, r.LeftCopy)
	}
	closed, failed, err := s.ReconcileAll(t.Context(), job.Observer{Processes: process.Host{}, Now: time.Now()})
	var left *job.LeftCopyError
	if len(closed) > 0 || len(failed) != 1 || !errors.As(failed[0], &left) || err != nil {
		t.Errorf("reconcile: closed %v, failed %v, %v; want the copy that is left", closed, failed, err)
	}
	again := job.GuestWorker{Store: s, ID: "j-lost-vm", Guest: onHost(home), Now: time.Now}
	if err := again.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := leftNothing(t, s, "j-lost-vm"); r.LeftCopy != nil || r.ErrorCode != job.CopyFailed || len(r.Warnings) > 0 {
		t.Errorf("left %+v, %s, warnings %q", r.LeftCopy, r.ErrorCode, r.Warnings)
	}
	if _, err := os.Lstat(home + "/.vmctl"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the copy in the VM is left: %v", err)
	}
}

// A file that is replaced while it is copied is in the copy, old or new.
func TestAFileIsReplacedDuringTheCopy(t *testing.T) {
	dir, _ := dirty(t)
	old, other := filepath.Join(dir, "old"), filepath.Join(dir, ".git", "other")
	if err := os.WriteFile(other, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	over, replaced := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-over:
				replaced <- nil
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, other, unix.AT_FDCWD, old, unix.RENAME_EXCHANGE); err != nil {
				replaced <- err
				return
			}
		}
	}()
	for i := range 8 {
		s := withGit(t)
		id := job.ID(fmt.Sprint("j-replaced-", i))
		workerEnds(t, start(t, s, id, dir, "cat old", contained(t, s, id, "working-tree", "")))
		r := leftNothing(t, s, id)
		if out := has(t, s.Path(id, ""), "stdout"); out != "old\n" || r.Status != job.Completed {
			t.Errorf("it is %s: %s, and sees %q", r.Status, r.Reason, out)
		}
	}
	close(over)
	if err := <-replaced; err != nil {
		t.Error(err)
	}
}
