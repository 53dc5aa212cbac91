package job_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/gitx"
	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

// withGit returns the store of a test that tells what jobs changed in their copies.
func withGit(t *testing.T) job.Store {
	t.Helper()
	return job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}, Git: gitHere{}}
}

// comes waits until a worker says that it has come to its phase, and kills it there.
func comes(t *testing.T, s job.Store, id job.ID, phase string) {
	t.Helper()
	worker, _ := play(t, s, id, phase)
	kill(t, worker)
}

// made makes a job that runs a shell script in a copy of a workspace.
func made(t *testing.T, s job.Store, id job.ID, script string) {
	t.Helper()
	dir, _ := dirty(t)
	r, err := s.Create(job.Record{
		ID: id, Agent: job.Plain, Command: []string{"sh", "-c", script}, Dir: dir, Created: time.Now(), Grace: job.Duration(time.Minute),
		Containment: "worktree", Scope: "head",
	})
	if err := errors.Join(err, s.WritePrompt(id, nil)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, r) })
}

// reconciled reconciles all jobs, which closes so many of them, and returns the errors of the rest.
func reconciled(t *testing.T, s job.Store, want int) []error {
	t.Helper()
	closed, failed, err := s.ReconcileAll(t.Context(), job.Observer{Processes: process.Host{}, Now: time.Now()})
	if err != nil || len(closed) != want {
		t.Fatalf("reconcile closed %d jobs: %v, want %d; failed: %v", len(closed), err, want, failed)
	}
	return failed
}

// keepsEdits checks that the record of a job says what editing changes, and that its patch is kept.
func keepsEdits(t *testing.T, s job.Store, r job.Record) {
	t.Helper()
	want := []job.Edit{{Path: "new", Kind: job.Added}, {Path: "old", Kind: job.Edited}}
	if diff := cmp.Diff(want, r.Edits); diff != "" || r.EditCounts[job.Added] != 1 || r.EditCounts[job.Edited] != 1 || r.LeftCopy != nil {
		t.Errorf("counts %v, left %v, edits (-want +got):\n%s", r.EditCounts, r.LeftCopy, diff)
	}
	patch, err := os.ReadFile(s.PatchPath(r.ID))
	if err != nil || !r.Patch || r.PatchBytes != int64(len(patch)) || !strings.Contains(string(patch), "+more\n") {
		t.Errorf("the patch is kept: %t, of %d bytes: %v\n%s", r.Patch, r.PatchBytes, err, patch)
	}
}

const editing = "echo more >>old; echo new >new"

// What a job changed in its copy is kept, wherever its worker is killed between the end of the command and that of the record.
//
// row J58, of a worker that was killed after its command
func TestAWorkerIsKilledBeforeItSaysWhatChanged(t *testing.T) {
	for _, phase := range []string{"add", "diff-tree", "diff-index", "kept"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			s := withGit(t)
			id := job.ID("j-killed-" + phase)
			made(t, s, id, editing+"; : >"+s.Path(id, "over"))
			comes(t, s, id, phase)
			if r, err := s.Read(id); err != nil || r.Status != job.Running || r.Edits != nil || !strings.HasPrefix(r.Reason, "its command has ended") {
				t.Fatalf("before it is reconciled it is %s (%s) with the edits %v: %v", r.Status, r.Reason, r.Edits, err)
			}
			if failed := reconciled(t, s, 1); len(failed) > 0 {
				t.Errorf("failed: %v", failed)
			}
			r := leftNothing(t, s, id)
			if r.Status != job.Stale {
				t.Errorf("it is %s: %s", r.Status, r.Reason)
			}
			keepsEdits(t, s, r)
			if failed := reconciled(t, s, 0); len(failed) > 0 {
				t.Errorf("failed: %v", failed)
			}
			if now := leftNothing(t, s, id); now.Revision != r.Revision {
				t.Errorf("the second reconcile wrote revision %d", now.Revision)
			}
		})
	}
}

// A cancel of a job whose worker is gone keeps what the job changed.
func TestCancelKeepsWhatAnOrphanChanged(t *testing.T) {
	s := withGit(t)
	made(t, s, "j-orphan", editing+"; : >../../over; exec sleep 3600")
	worker := background(t, s, "j-orphan", "")
	until(t, "it has edited its copy", func() bool { _, err := os.Stat(s.Path("j-orphan", "over")); return err == nil })
	until(t, "its record says that it runs", func() bool { r, err := s.Read("j-orphan"); return err == nil && r.Status == job.Running })
	kill(t, worker)
	r, outcome, err := job.Canceller{Store: s, Processes: process.Host{}, By: "ann", Now: time.Now}.Cancel(t.Context(), "j-orphan")
	if err != nil || outcome != job.Signaled || r.Status != job.Cancelled {
		t.Errorf("cancel: %s, it is %s: %v", outcome, r.Status, err)
	}
	keepsEdits(t, s, leftNothing(t, s, "j-orphan"))
}

// gitInterrupted is git during whose comparison of a copy the user interrupts vmctl.
type gitInterrupted struct{ interrupt func() }

func (g gitInterrupted) Run(ctx context.Context, _ gitx.Command) (gitx.Output, error) {
	g.interrupt()
	return gitx.Output{}, ctx.Err()
}

// A reconcile that is interrupted, or comes while another one compares the copy, leaves the record and the copy for the next.
func TestReconcileComesAgain(t *testing.T) {
	for _, how := range []string{"interrupted", "another is at it"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := withGit(t)
			id := job.ID("j-again-" + strings.ReplaceAll(how, " ", "-"))
			made(t, s, id, editing+"; : >"+s.Path(id, "over"))
			comes(t, s, id, "add")
			before, err := s.Read(id)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			tries := s
			release := func() error { return nil }
			if how == "interrupted" {
				tries.Git = gitInterrupted{cancel}
			} else {
				lock, err := lockfile.Acquire(ctx, lockfile.Request{Path: s.Path(id, "copy.lock"), Owner: s.Owner})
				if err != nil {
					t.Fatal(err)
				}
				release = lock.Release
			}
			_, err = tries.Reconcile(ctx, before, job.Observer{Processes: process.Host{}, Now: time.Now()})
			var held *lockfile.HeldError
			if how == "interrupted" && !errors.Is(err, context.Canceled) || how != "interrupted" && !errors.As(err, &held) {
				t.Errorf("reconcile: %v", err)
			}
			if now, err := s.Read(id); err != nil || now.Revision != before.Revision || now.Status != job.Running {
				t.Errorf("it is %s at revision %d: %v, before %d", now.Status, now.Revision, err, before.Revision)
			}
			if err := release(); err != nil {
				t.Fatal(err)
			}
			if failed := reconciled(t, s, 1); len(failed) > 0 {
				t.Errorf("failed: %v", failed)
			}
			keepsEdits(t, s, leftNothing(t, s, id))
		})
	}
}

// A patch is kept whatever its size, and gives all that the job changed.
func TestALongPatchIsKept(t *testing.T) {
	s := withGit(t)
	made(t, s, "j-long", "head -c 3000000 /dev/urandom >big; sha256sum <big")
	workAs(t, s, "j-long", "")
	r := leftNothing(t, s, "j-long")
	info, err := os.Stat(s.PatchPath("j-long"))
	if err != nil || !r.Patch || r.PatchBytes != info.Size() || r.PatchBytes < 3000000 {
		t.Fatalf("the patch is kept: %t, of %d bytes: %v; warnings %q", r.Patch, r.PatchBytes, err, r.Warnings)
	}
	again := t.TempDir()
	runGit(t, again, "init", "-q")
	runGit(t, again, "apply", s.PatchPath("j-long"))
	sum, want := fmt.Sprintf("%x", sha256.Sum256([]byte(has(t, again, "big")))), has(t, s.Path("j-long", ""), "stdout")
	if !strings.HasPrefix(want, sum+" ") {
		t.Errorf("the patch makes a file with the digest %s, want %s", sum, want)
	}
}

// A copy whose edits cannot be kept elsewhere stays, and the record says where. Reconcile tries again, and a prune removes nothing
// of it.
func TestACopyWhoseEditsCannotBeKeptStays(t *testing.T) {
	for _, how := range []string{"by its worker", "by reconcile", "by a cancel"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := withGit(t)
			id := job.ID("j-stays-" + strings.ReplaceAll(how, " ", "-"))
			made(t, s, id, editing+"; : >"+s.Path(id, "over"))
			writeFile(t, s.Path(id, ""), "patch/in the way", "")
			switch how {
			case "by its worker":
				workAs(t, s, id, "")
			case "by reconcile":
				comes(t, s, id, "add")
				reconciled(t, s, 1)
			default:
				comes(t, s, id, "add")
				if _, _, err := (job.Canceller{Store: s, Processes: process.Host{}, By: "ann", Now: time.Now}).Cancel(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			r, err := s.Read(id)
			if err != nil || !r.Status.IsTerminal() || r.Edits != nil || r.Patch {
				t.Fatalf("it is %s with the edits %v: %v", r.Status, r.Edits, err)
			}
			copied := s.Path(id, "copy")
			if r.LeftCopy == nil || r.LeftCopy.Path != copied || !strings.Contains(r.LeftCopy.Reason, "kept nowhere else: keep the patch: write ") {
				t.Errorf("the copy that is left: %+v", r.LeftCopy)
			}
			if text := has(t, filepath.Join(copied, "tree"), "old"); text != "old\nmore\n" {
				t.Errorf("the file in the copy: %q", text)
			}
			if removed, err := s.Prune(0, time.Now()); len(removed) > 0 || err != nil {
				t.Errorf("pruned %v: %v", removed, err)
			}
			failed := reconciled(t, s, 0)
			var left *job.LeftCopyError
			if len(failed) != 1 || !errors.As(failed[0], &left) || !strings.HasSuffix(left.Error(), "the next apply tries again, and rm -rf "+copied+" gives it up") {
				t.Errorf("failed: %v", failed)
			}
			if now, err := s.Read(id); err != nil || now.Revision != r.Revision {
				t.Errorf("a try that changed nothing wrote revision %d: %v", now.Revision, err)
			}
			if err := os.RemoveAll(s.PatchPath(id)); err != nil {
				t.Fatal(err)
			}
			if failed := reconciled(t, s, 0); len(failed) > 0 {
				t.Errorf("failed: %v", failed)
			}
			now := leftNothing(t, s, id)
			keepsEdits(t, s, now)
			if now.Status != r.Status || !now.Ended.Equal(r.Ended) || now.Reason != r.Reason {
				t.Errorf("it was %s (%s), and is %s (%s)", r.Status, r.Reason, now.Status, now.Reason)
			}
		})
	}
}

// While a process of a job lives that has ended, it may write to the copy, which stays.
func TestACopyStaysWhileAProcessOfItsJobLives(t *testing.T) {
	s := withGit(t)
	made(t, s, "j-lives", editing)
	writeFile(t, s.Path("j-lives", ""), "patch/in the way", "")
	if r := workAs(t, s, "j-lives", ""); r.LeftCopy == nil {
		t.Fatal("the copy is not left")
	}
	if err := os.RemoveAll(s.PatchPath("j-lives")); err != nil {
		t.Fatal(err)
	}
	sleep, err := process.LookPath("sleep", "/", os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	lives, err := process.Host{}.Start(process.Command{Path: sleep, Args: []string{"3600"}, Env: append(os.Environ(), job.Marker+"=j-lives")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lives.Force() }) //nolint:errcheck // it may have ended
	r, err := s.Read("j-lives")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the process can be found", func() bool { return len(living(t, r)) == 1 })
	failed := reconciled(t, s, 0)
	if len(failed) != 1 || !strings.Contains(failed[0].Error(), "processes of the job live: ") || has(t, s.Path("j-lives", "copy/tree"), "old") != "old\nmore\n" {
		t.Errorf("failed: %v", failed)
	}
	kill(t, lives)
	if failed := reconciled(t, s, 0); len(failed) > 0 {
		t.Errorf("failed: %v", failed)
	}
	keepsEdits(t, s, leftNothing(t, s, "j-lives"))
}

// The user removes a copy that was left: the record says so after the next reconcile.
func TestALeftCopyIsRemovedByHand(t *testing.T) {
	s := withGit(t)
	made(t, s, "j-by-hand", editing)
	writeFile(t, s.Path("j-by-hand", ""), "patch/in the way", "")
	if r := workAs(t, s, "j-by-hand", ""); r.LeftCopy == nil {
		t.Fatal("the copy is not left")
	}
	if err := os.RemoveAll(s.Path("j-by-hand", "copy")); err != nil {
		t.Fatal(err)
	}
	if failed := reconciled(t, s, 0); len(failed) > 0 {
		t.Errorf("failed: %v", failed)
	}
	if r := leftNothing(t, s, "j-by-hand"); r.LeftCopy != nil || r.Edits != nil {
		t.Errorf("left %v, edits %v", r.LeftCopy, r.Edits)
	}
}

// deepest is the number of folders below each other that a process with few descriptors cannot remove: each takes one.
const deepest = 64

// cleanPoorly reconciles in a process that may have few files open at once, and so can remove no deep folder.
func cleanPoorly(s job.Store) error {
	few := syscall.Rlimit{Cur: deepest / 2, Max: deepest / 2}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		return err
	}
	_, failed, err := s.ReconcileAll(context.Background(), job.Observer{Processes: process.Host{}, Now: time.Now()})
	return errors.Join(append(failed, err)...)
}

// A copy that cannot be removed is tried again by each reconcile, and the record says that it is there.
func TestACopyThatCannotBeRemovedIsTriedAgain(t *testing.T) {
	s := withGit(t)
	made(t, s, "j-deep", "true")
	comes(t, s, "j-deep", "filling")
	deep := s.Path("j-deep", "copy/tree"+strings.Repeat("/d", deepest))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	// The job has ended, and its end is written by a process that cannot remove the copy.
	for try := range 2 {
		worker := background(t, s, "j-deep", "poor")
		limit, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := worker.Wait(limit)
		cancel()
		if status, ended := process.Status(err); !ended || status != try { // a retry is told of, the end of the record is not
			t.Errorf("try %d: %v", try, err)
		}
		r, err := s.Read("j-deep")
		if err != nil || r.Status != job.Stale || r.LeftCopy == nil || !strings.Contains(r.LeftCopy.Reason, "it cannot be removed: ") {
			t.Fatalf("try %d: it is %s, and its copy: %v, %v", try, r.Status, r.LeftCopy, err)
		}
	}
	if failed := reconciled(t, s, 0); len(failed) > 0 {
		t.Errorf("failed: %v", failed)
	}
	if r := leftNothing(t, s, "j-deep"); r.LeftCopy != nil {
		t.Errorf("the record says that there is a copy: %v", r.LeftCopy)
	}
}

// A job without containment runs in its folder, and no end of it removes that or anything in it.
//
// row J58, of a job without containment
func TestWithoutContainmentTheFolderStays(t *testing.T) {
	for how, script := range map[string]string{
		"completes": editing, "fails": editing + "; exit 3", "killed": editing + "; : >over; exec sleep 3600", "cancelled": editing + "; : >over; exec sleep 3600",
	} {
		for _, containment := range []string{"none", ""} { // "": of a record from before there was containment
			t.Run(fmt.Sprintf("%s, %q", how, containment), func(t *testing.T) {
				t.Parallel()
				s := withGit(t)
				dir, _ := dirty(t)
				before := append(files(t, dir), "new")
				id := job.ID("j-none-" + how + containment)
				worker := start(t, s, id, dir, script, func() {
					if _, err := s.Update(t.Context(), id, func(r *job.Record) error { r.Containment = job.Containment(containment); return nil }); err != nil {
						t.Error(err)
					}
				})
				if how == "killed" || how == "cancelled" {
					before = append(before, "over")
					until(t, "it runs", func() bool {
						r, err := s.Read(id)
						_, over := os.Stat(filepath.Join(dir, "over"))
						return err == nil && over == nil && r.Status == job.Running
					})
				}
				if how == "killed" {
					kill(t, worker)
				}
				if how == "killed" || how == "cancelled" {
					if r, _, err := (job.Canceller{Store: s, Processes: process.Host{}, By: "ann", Now: time.Now}).Cancel(t.Context(), id); err != nil || r.Status != job.Cancelled {
						t.Errorf("cancel: it is %s: %v", r.Status, err)
					}
				} else {
					workerEnds(t, worker)
				}
				if failed := reconciled(t, s, 0); len(failed) > 0 {
					t.Errorf("failed: %v", failed)
				}
				r := leftNothing(t, s, id)
				slices.Sort(before)
				if diff := cmp.Diff(before, files(t, dir)); diff != "" || !r.Status.IsTerminal() || r.LeftCopy != nil {
					t.Errorf("it is %s, left %v; its folder (-want +got):\n%s", r.Status, r.LeftCopy, diff)
				}
				if text := has(t, dir, "old"); text != "old\nmore\n" {
					t.Errorf("it wrote %q", text)
				}
			})
		}
	}
}

// files lists all below a folder but what is in its repository.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if e != nil && e.Name() == ".git" {
			return fs.SkipDir
		}
		all = append(all, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}
