//go:build unix

package lockfile_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vmctl/internal/lockfile"
)

// childTask says what a process of this test binary does instead of testing.
const childTask = "LOCKFILE_TEST_CHILD"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(childTask) {
	case "hold":
		err = holdUntilKilled(os.Args[1], lockfile.Acquire)
	case "share":
		err = holdUntilKilled(os.Args[1], lockfile.Share)
	case "count":
		err = count(os.Args[1])
	case "enter":
		err = enterForever(os.Args[1])
	case "once":
		err = enter(os.Args[1])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(t *testing.T, task, path string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, path)
	cmd.Env = append(os.Environ(), childTask+"="+task)
	cmd.Stderr = os.Stderr
	return cmd
}

func mine() lockfile.Owner {
	if os.Getenv("LOCKFILE_TEST_HERE") != "" {
		return here()
	}
	return lockfile.Owner{PID: os.Getpid(), Host: "ada", Command: "child", Since: since}
}

func holdUntilKilled(path string, take func(context.Context, lockfile.Request) (*lockfile.Lock, error)) error {
	if _, err := take(context.Background(), lockfile.Request{Path: path, Owner: mine()}); err != nil {
		return err
	}
	fmt.Println("held")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// holding starts a child that holds the lock until it is killed, and returns when
// it does.
func holding(t *testing.T, task, path string) *exec.Cmd {
	t.Helper()
	cmd := child(t, task, path)
	// The child waits for the end of its input, which Wait brings after the kill.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if said, err := bufio.NewReader(out).ReadString('\n'); said != "held\n" {
		t.Fatalf("child said %q, %v", said, err)
	}
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child was not killed")
	}
}

// A killed holder frees its lock, and what it wrote about itself misleads nobody.
//
// row J35
func TestKilledHolderFreesTheLock(t *testing.T) {
	path := lockPath(t)
	for range 10 {
		cmd := holding(t, "hold", path)
		if got, want := holder(t, path), fmt.Sprintf("held true by %d child", cmd.Process.Pid); got != want {
			t.Errorf("while the child lives: %s, want %s", got, want)
		}
		kill(t, cmd)
		if got := holder(t, path); got != "held false by 0 " {
			t.Errorf("after the kill: %s", got)
		}
		release(t, acquire(t, lockfile.Request{Path: path, Owner: owner(1)}))
	}
}

// Whoever asks for the holder locks the file shared for a moment. That is no
// holder: the lock is tried again, here until the context ends.
func TestLookIsNoHolder(t *testing.T) {
	path := lockPath(t)
	looking, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(looking.Fd()), unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lockfile.Acquire(ctx, lockfile.Request{Path: path, Owner: owner(1)})
	want := "lock " + path + ": another process keeps looking at it: context canceled"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := looking.Close(); err != nil {
		t.Fatal(err)
	}
	release(t, acquire(t, lockfile.Request{Path: path, Owner: owner(1)}))
}

const (
	counters = 6
	counts   = 40
)

// count adds to a number in a file, in a way that loses counts unless the lock
// excludes everybody else.
func count(path string) error {
	for range counts {
		l, err := lockfile.Acquire(context.Background(), lockfile.Request{Path: path, Owner: mine(), Wait: time.Hour})
		if err != nil {
			return err
		}
		if err := increment(filepath.Join(filepath.Dir(path), "count")); err != nil {
			return err
		}
		if err := l.Release(); err != nil {
			return err
		}
	}
	return nil
}

func increment(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strconv.Itoa(n+1)), 0o600)
}

func TestTwoProcessesNeverHoldIt(t *testing.T) {
	path := lockPath(t)
	total := filepath.Join(filepath.Dir(path), "count")
	if err := os.WriteFile(total, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	running := make(chan error, counters)
	for range counters {
		cmd := child(t, "count", path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { running <- cmd.Wait() }()
	}
	for ended := 0; ended < counters; {
		select {
		case err := <-running:
			ended++
			if err != nil {
				t.Error(err)
			}
		default:
			holder(t, path)
		}
	}
	data, err := os.ReadFile(total)
	if err != nil {
		t.Fatal(err)
	}
	if want := strconv.Itoa(counters * counts); string(data) != want {
		t.Errorf("counted %s, want %s", data, want)
	}
}

// Whoever shares the lock is named as long as it lives, and not longer.
func TestKilledSharerFreesItsSeat(t *testing.T) {
	path := lockPath(t)
	first, second := holding(t, "share", path), holding(t, "share", path)
	for _, stage := range []struct {
		kill *exec.Cmd
		want string
	}{
		{nil, fmt.Sprintf("%d child, %d child", first.Process.Pid, second.Process.Pid)},
		{first, fmt.Sprintf("%d child", second.Process.Pid)},
		{second, ""},
	} {
		if stage.kill != nil {
			kill(t, stage.kill)
		}
		if got := sharers(t, path); got != stage.want {
			t.Errorf("shared by %q, want %q", got, stage.want)
		}
	}
	release(t, acquire(t, lockfile.Request{Path: path, Owner: owner(1)}))
}
