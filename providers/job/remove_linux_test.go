package job_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vmctl/internal/process"
	"vmctl/providers/job"
)

// amongMounts starts a process of this test binary in a phase, where mounts are its own, after a shell text has made some.
func amongMounts(t *testing.T, s job.Store, id job.ID, phase, mounts string) *process.Child {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--mount"}
	if os.Getuid() != 0 {
		args = append(args, "--user", "--map-current-user", "--keep-caps")
	}
	child, err := process.Host{}.Start(process.Command{
		Path: unshare, Args: append(args, "sh", "-ec", mounts+"\nexec \"$0\"", program), Stderr: os.Stderr,
		Env: append(os.Environ(), role+"="+s.Dir+"|"+string(id)+"|"+phase, job.Marker+"="+string(id)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Force() }) //nolint:errcheck // it may have ended
	return child
}

// precious makes a folder that is not the job's, and a check that it is as before.
func precious(t *testing.T) (dir string, check func()) {
	t.Helper()
	dir = t.TempDir()
	writeFile(t, dir, "deep/file", "precious\n")
	writeFile(t, dir, "deep/.git/HEAD", "precious\n")
	if err := os.Chmod(filepath.Join(dir, "deep", "file"), 0o200); err != nil {
		t.Fatal(err)
	}
	state := func() (all []string) {
		err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err == nil {
				all = append(all, info.Mode().String()+" "+strings.TrimPrefix(name, dir))
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return all
	}
	before := state()
	return dir, func() {
		t.Helper()
		if now := state(); !slices.Equal(before, now) {
			t.Errorf("the files that were mounted:\n%s\nwant\n%s", strings.Join(now, "\n"), strings.Join(before, "\n"))
		}
	}
}

// What a job mounts in its copy or in its TMPDIR is not its own: nothing there is changed, copied or removed, and the copy stays
// until it is unmounted.
func TestTheEndOfAJobLeavesMountsAlone(t *testing.T) {
	for name, test := range map[string]struct {
		script      string // PRECIOUS is a folder
		containment job.Containment
		at          string   // the mount; "": the record does not say
		edits       []string // kept once it is gone
	}{
		"in the copy":            {"mkdir m; mount --bind PRECIOUS m; echo more >>old", "worktree", "copy/tree/m", []string{"old"}},
		"over a file":            {"mount --bind PRECIOUS/deep/.git/HEAD old; echo new >new", "worktree", "copy/tree/old", []string{"new"}},
		"over a folder":          {"mkdir -p a/b; mount -t tmpfs none a; mkdir a/b; mount --bind PRECIOUS a/b; echo more >>old", "worktree", "copy/tree/a", []string{"old"}},
		"beside the tree":        {"mkdir ../m; mount --bind PRECIOUS ../m; echo more >>old", "worktree", "copy/m", []string{"old"}},
		"in the TMPDIR":          {"mkdir $TMPDIR/m; mount --bind PRECIOUS $TMPDIR/m; echo more >>old", "worktree", "", []string{"old"}},
		"in the TMPDIR, no copy": {"mkdir $TMPDIR/m; mount --bind PRECIOUS $TMPDIR/m", "none", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withGit(t)
			id := job.ID("j-" + strings.ToLower(strings.NewReplacer(" ", "-", ",", "").Replace(name)))
			dir, unchanged := precious(t)
			made(t, s, id, strings.ReplaceAll(test.script, "PRECIOUS", dir))
			if _, err := s.Update(t.Context(), id, func(r *job.Record) error { r.Containment = test.containment; return nil }); err != nil {
				t.Fatal(err)
			}
			workerEnds(t, amongMounts(t, s, id, "", "true"))
			unchanged()
			r, err := s.Read(id)
			if err != nil || r.Status != job.Completed {
				t.Fatalf("it is %s: %s, %v", r.Status, r.Reason, err)
			}
			says := strings.Join(r.Warnings, "\n")
			if test.at != "" {
				if r.LeftCopy == nil || r.LeftCopy.Path != s.Path(id, "copy") || !slices.Contains(r.LeftCopy.Mounted, s.Path(id, test.at)) || strings.Contains(r.LeftCopy.String(), "rm ") {
					t.Fatalf("the copy that is left: %+v", r.LeftCopy)
				}
				says = r.LeftCopy.String()
			}
			if at := s.Path(id, "tmp/m"); !strings.Contains(says, "something is mounted in it, and left alone; unmount it first: umount ") || test.at == "" && !strings.Contains(says, at) {
				t.Errorf("it says %q", says)
			}
			if failed := reconciled(t, s, 0); len(failed) > 0 { // the mount has ended with the processes that saw it
				t.Errorf("failed: %v", failed)
			}
			unchanged()
			var edits []string
			for _, e := range leftNothing(t, s, id).Edits {
				edits = append(edits, e.Path)
			}
			if !slices.Equal(edits, test.edits) {
				t.Errorf("edits %q, want %q", edits, test.edits)
			}
		})
	}
}

// What is mounted in the folder of a job that has ended, or whose worker was killed, is left alone by all that removes it.
func TestRemovingAJobLeavesMountsAlone(t *testing.T) {
	for _, phase := range []string{"reconciles", "cancels", "prunes", "prunes bare"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			s := withGit(t)
			id := job.ID("j-" + strings.ReplaceAll(phase, " ", "-"))
			dir, unchanged := precious(t)
			made(t, s, id, editing+"; : >"+s.Path(id, "over"))
			at := s.Path(id, "m")
			switch phase {
			case "reconciles", "cancels":
				at = s.Path(id, "copy/tree/sub")
				comes(t, s, id, "add")
			default:
				workAs(t, s, id, "")
			}
			if phase == "prunes bare" {
				if err := os.Remove(s.Path(id, "record.json")); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(at, 0o700); err != nil {
				t.Fatal(err)
			}
			old := time.Now().Add(-2 * job.Window)
			if err := os.Chtimes(s.Path(id, ""), old, old); err != nil {
				t.Fatal(err)
			}
			child := amongMounts(t, s, id, phase, "mount --bind "+dir+" "+at)
			limit, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			status, ended := process.Status(child.Wait(limit))
			if told := strings.HasPrefix(phase, "prunes"); !ended || (status != 0) != told {
				t.Errorf("the process ended: %t, with %d; it is to tell: %t", ended, status, told)
			}
			unchanged()
			if phase != "reconciles" && phase != "cancels" {
				return
			}
			if r, err := s.Read(id); err != nil || !r.Status.IsTerminal() || r.LeftCopy == nil || !slices.Equal(r.LeftCopy.Mounted, []string{at}) {
				t.Errorf("it is %s, left %+v: %v", r.Status, r.LeftCopy, err)
			}
			if failed := reconciled(t, s, 0); len(failed) > 0 {
				t.Errorf("failed: %v", failed)
			}
			keepsEdits(t, s, leftNothing(t, s, id))
		})
	}
}

// tidy ends or removes jobs as a phase says, and says what failed.
func tidy(s job.Store, id job.ID, phase string) error {
	switch phase {
	case "reconciles":
		_, failed, err := s.ReconcileAll(context.Background(), job.Observer{Processes: process.Host{}, Now: time.Now()})
		return errors.Join(append(failed, err)...)
	case "cancels":
		_, _, err := job.Canceller{Store: s, Processes: process.Host{}, By: "ann", Now: time.Now}.Cancel(context.Background(), id)
		return err
	default:
		_, err := s.Prune(0, time.Now())
		return err
	}
}
