//go:build unix

package lockfile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/lockfile"
)

// enter holds the lock once. Another who is inside at the same time is an error:
// a file that only one can make is made, and removed at the end.
func enter(path string) error {
	l, err := lockfile.Acquire(context.Background(), lockfile.Request{Path: path, Owner: here(), Wait: time.Hour})
	if err != nil {
		return err
	}
	inside := path + ".inside"
	if said, err := os.ReadFile(inside); err == nil && isRunning(strings.TrimSpace(string(said))) {
		return fmt.Errorf("process %s is inside too", said)
	}
	if err := os.WriteFile(inside, fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		return err
	}
	log, err := os.OpenFile(path+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(log, os.Getpid())
	return errors.Join(err, log.Close(), os.Remove(inside), l.Check(), l.Release())
}

func enterForever(path string) error {
	for {
		if err := enter(path); err != nil {
			return err
		}
		if _, err := fmt.Println("entered"); err != nil {
			return err
		}
	}
}

// isRunning reports whether a process still runs: a killed one has left its file.
func isRunning(pid string) bool {
	_, err := os.Stat(filepath.Join("/proc", pid, "exe"))
	return pid != "" && err == nil
}

// here is this process, as others see it.
func here() lockfile.Owner {
	host, err := os.Hostname()
	if err != nil {
		panic(err)
	}
	return lockfile.Owner{PID: os.Getpid(), Host: host, Command: "child", Since: since}
}

// row J38
func TestFiftyAfterADeadHolder(t *testing.T) {
	path := lockPath(t)
	holder := holding(t, "hold", path)
	var wait sync.WaitGroup
	pids := make([]string, 50)
	for i := range pids {
		cmd := child(t, "once", path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pids[i] = fmt.Sprint(cmd.Process.Pid)
		wait.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	kill(t, holder)
	wait.Wait()
	log, err := os.ReadFile(path + ".log")
	if err != nil {
		t.Fatal(err)
	}
	entered := strings.Fields(string(log))
	slices.Sort(entered)
	slices.Sort(pids)
	if d := cmp.Diff(pids, entered); d != "" {
		t.Errorf("who was inside (-each once +got):\n%s", d)
	}
}

// Locks of every place in a data directory, contended for by processes of which
// one is killed over and over, wherever it is just then.
//
// row X04, of the lock itself: each kind is one at another path
func TestNeverTwoHoldersThoughOneIsKilled(t *testing.T) {
	for _, name := range []string{"lock", "busy/vm.dev", "keys.lock"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			steady := child(t, "enter", path)
			out, err := steady.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := steady.Start(); err != nil {
				t.Fatal(err)
			}
			heard := make([]byte, 64)
			for range 12 {
				victim := child(t, "enter", path)
				said, err := victim.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := victim.Start(); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					if _, err := said.Read(heard); err != nil {
						t.Fatal("the victim ended by itself:", err)
					}
				}
				kill(t, victim)
				if _, err := out.Read(heard); err != nil {
					t.Fatal("the other ended:", err)
				}
			}
			kill(t, steady)
		})
	}
}

// Critical sections that are stretched, a thousand of them, and nobody ever meets
// another inside.
//
// row J41
func TestThousandStretchedSections(t *testing.T) {
	const holders, times = 8, 125
	path := lockPath(t)
	var inside, total, overlaps atomic.Int32
	var wait sync.WaitGroup
	for i := range holders {
		wait.Go(func() {
			for range times {
				l, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: path, Owner: owner(i + 1), Wait: time.Hour})
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					overlaps.Add(1)
				}
				for range 50 {
					runtime.Gosched()
				}
				inside.Add(-1)
				total.Add(1)
				if err := l.Release(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	if got := fmt.Sprint(total.Load(), " sections, ", overlaps.Load(), " overlaps"); got != "1000 sections, 0 overlaps" {
		t.Error(got)
	}
}

// A holder of any age is a holder as long as it lives.
//
// row J34
func TestNobodyIsTooOldToHold(t *testing.T) {
	path := lockPath(t)
	old := owner(1)
	old.Since = time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC)
	defer release(t, acquire(t, lockfile.Request{Path: path, Owner: old}))
	_, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: path, Owner: owner(2), Wait: 50 * time.Millisecond})
	want := "lock " + path + ": held by vmctl apply (pid 1 on ada) since 1999-12-31T23:59:59Z"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if got := holder(t, path); got != "held true by 1 vmctl apply" {
		t.Errorf("afterwards: %s", got)
	}
}

// Whatever is written beside a lock, the kernel says whether it is held.
//
// row J33
// row J36
func TestRecordDecidesNothing(t *testing.T) {
	for name, record := range map[string]string{
		"corrupt": "{", "empty": "", "no record": "-",
		"other host":      `{"pid":1,"host":"elsewhere","command":"vmctl apply","since":"2026-03-04T05:06:07Z"}`,
		"from the future": `{"pid":1,"host":"elsewhere","command":"vmctl apply","since":"2999-03-04T05:06:07Z"}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := lockPath(t)
			holder := holding(t, "hold", path)
			if err := os.Remove(path + ".owner"); err != nil {
				t.Fatal(err)
			}
			if record != "-" {
				if err := os.WriteFile(path+".owner", []byte(record), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: path, Owner: owner(2), Wait: 10 * time.Millisecond})
			var held *lockfile.HeldError
			if !errors.As(err, &held) || strings.Contains(err.Error(), "\n") {
				t.Errorf("while it is held: %v, want a *HeldError of one line", err)
			}
			if _, err := lockfile.Clear(t.Context(), path); !errors.As(err, &held) {
				t.Errorf("clearing it while it is held: %v, want a *HeldError", err)
			}
			kill(t, holder)
			release(t, acquire(t, lockfile.Request{Path: path, Owner: owner(2)}))
		})
	}
}
