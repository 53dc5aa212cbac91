package job_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

// Of the ended jobs of a workspace the newest stay, and all that have not ended, and the newest of each block.
//
// row J12
func TestPruneKeepsTheNewestAndTheActive(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	block := ""
	add := func(id job.ID, status job.Status, workspace string, ended int) {
		record(t, s, id, status, func(r *job.Record) {
			r.Block, r.Created = block, noon.Add(time.Duration(ended)*time.Minute)
			r.Workspace, r.Dir, r.Worker, r.Ended = workspace, "/src", &process.Identity{PID: 7}, noon.Add(time.Duration(ended)*time.Minute)
		})
	}
	for i := range 60 {
		add(job.ID(fmt.Sprintf("ended-%02d", i)), job.Completed, "workspace.a", i)
	}
	for i, status := range []job.Status{job.Queued, job.Starting, job.Running} {
		add(job.ID(fmt.Sprintf("active-%d", i)), status, "workspace.a", -1000)
	}
	add("other", job.Completed, "workspace.b", -1000)
	add("none", job.Completed, "", -1000)
	block = "job.once"
	add("block-old", job.Completed, "workspace.a", -2000)
	add("block-last", job.Completed, "workspace.a", -1999)
	removed, err := s.Prune(50, noon)
	if err != nil || len(removed) != 11 {
		t.Errorf("removed %v: %v, want the ten oldest, and the older of the block", removed, err)
	}
	if _, err := s.Read("block-last"); err != nil {
		t.Error(err)
	}
	left, unread, err := s.List()
	if err != nil || len(unread) > 0 || len(left) != 50+3+2+1 {
		t.Errorf("%d records are left: %v %v, want 56", len(left), unread, err)
	}
	for i := range 10 {
		if _, err := os.Lstat(s.Path(job.ID(fmt.Sprintf("ended-%02d", i)), "")); err == nil {
			t.Errorf("the folder of job ended-%02d is there", i)
		}
	}
}

// Whatever a folder of records leads to, nothing outside of the store is removed.
//
// row J43
func TestPruneRemovesNothingElsewhere(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	outside := t.TempDir()
	precious := filepath.Join(outside, "precious")
	write(t, outside, map[string]string{"precious": "x"})
	for _, id := range []job.ID{"linked", "inside"} {
		record(t, s, id, job.Completed, func(r *job.Record) { r.Dir = "/src" })
	}
	// What ran has put links into its folder; another folder of records is a link itself.
	links := map[string]string{
		s.Path("inside", "stdout"): "/etc/passwd", s.Path("inside", "up"): "../..", s.Path("inside", "out"): outside,
		filepath.Join(s.Dir, "elsewhere"): outside,
	}
	for link, to := range links {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(s.Path("linked", "record.json")); err != nil || os.WriteFile(filepath.Join(outside, "record.json"), data, 0o600) != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.Path("linked", "")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, s.Path("linked", "")); err != nil {
		t.Fatal(err)
	}
	if removed, err := s.Prune(0, noon); err != nil || len(removed) != 1 || removed[0] != "inside" {
		t.Errorf("removed %v: %v, want the job whose folder it is", removed, err)
	}
	for _, path := range []string{"/etc/passwd", precious, filepath.Join(outside, "record.json")} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s is gone: %v", path, err)
		}
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A folder whose record is gone, or was never written, is removed later; one that was just made stays.
func TestPruneRemovesFoldersWithoutARecord(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	record(t, s, "kept", job.Completed, func(r *job.Record) { r.Dir = "/src" })
	for name, age := range map[string]time.Duration{"killed": job.Window, "made": job.Window - time.Second, "kept": job.Window, "Not-a-job": job.Window} {
		if err := os.MkdirAll(filepath.Join(s.Dir, name, "tmp"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(s.Dir, name), noon.Add(-age), noon.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if removed, err := s.Prune(50, noon); err != nil || len(removed) != 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
	var left []string
	entries, err := os.ReadDir(s.Dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := strings.Join(left, " "); err != nil || got != "Not-a-job kept made" {
		t.Errorf("left are %q, %v", got, err)
	}
}

// While a block runs again, or after a start of it that failed, its last result stays.
//
// row J12, of the results of blocks
func TestPruneKeepsTheLastResultOfABlock(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	for i, block := range []string{"job.runs", "job.runs", "job.runs", "job.failed", "job.failed", "job.failed"} {
		status, id := job.Completed, job.ID(fmt.Sprintf("j-%d", i))
		if i%3 == 2 {
			status = job.Running
			if block == "job.failed" {
				status = job.Queued
			}
		}
		record(t, s, id, status, func(r *job.Record) {
			r.Block, r.Run, r.Dir, r.Ended = block, i, "/src", noon.Add(time.Duration(i)*time.Minute)
		})
	}
	if _, err := s.Update(t.Context(), "j-5", func(r *job.Record) error { return job.Abandon(r, job.NotLaunched, "the disk is full", noon) }); err != nil {
		t.Fatal(err)
	}
	removed, err := s.Prune(0, noon)
	slices.Sort(removed)
	if want := []job.ID{"j-0", "j-3"}; err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %v, %v; want %v", removed, err, want)
	}
}
