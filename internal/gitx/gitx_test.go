package gitx_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vmctl/internal/gitx"
)

// here runs commands on this host, with a hostile environment.
type here struct{ env []string }

func (h here) Run(ctx context.Context, c gitx.Command) (gitx.Output, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = c.Dir, c.Stdin, c.Stdout, &stderr, h.env
	err := cmd.Run()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		return gitx.Output{Status: cmd.ProcessState.ExitCode(), Stderr: stderr.String()}, nil
	}
	return gitx.Output{}, err
}

// repository makes a repository with one commit, in a home of its own.
func repository(t *testing.T) (git gitx.Git, h here) {
	t.Helper()
	h = here{env: []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}}
	git = gitx.Git{Runner: h, Dir: t.TempDir()}
	must(t, git, "init", "-q", "-b", "main")
	must(t, git, "config", "user.name", "Ann")
	must(t, git, "config", "user.email", "ann@example.org")
	must(t, git, "commit", "-q", "--allow-empty", "-m", "one")
	return git, h
}

func must(t *testing.T, g gitx.Git, args ...string) string {
	t.Helper()
	out, err := g.Output(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Variables of the caller lead git nowhere else, and give it no settings.
//
// row J49, of the environment
// row J50
// row J51, of the runner of git
func TestTheEnvironmentHasNoEffect(t *testing.T) {
	git, h := repository(t)
	other, _ := repository(t)
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("[user]\n\tname = Mallory\n[alias]\n\tx = !false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hostile := git
	hostile.Runner = here{env: append(h.env,
		"GIT_DIR="+other.Dir+"/.git", "GIT_WORK_TREE="+other.Dir, "GIT_INDEX_FILE="+config, "GIT_CONFIG_GLOBAL="+config, "GIT_CONFIG_SYSTEM="+config,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=Mallory", "GIT_CONFIG_PARAMETERS='user.name=Mallory'",
		"GIT_SSH_COMMAND=false", "GIT_EXEC_PATH=/nowhere", "GIT_AUTHOR_NAME=Mallory", "GIT_OBJECT_DIRECTORY=/nowhere", "GIT_NAMESPACE=x",
		"GIT_TRACE="+config+".trace", "GIT_EXTERNAL_DIFF=false", "GIT_CEILING_DIRECTORIES="+filepath.Dir(git.Dir),
	)}
	for _, args := range [][]string{
		{"rev-parse", "--show-toplevel"},
		{"rev-parse", "--absolute-git-dir"},
		{"config", "--get", "user.name"},
		{"rev-parse", "HEAD"},
	} {
		if want, got := must(t, git, args...), must(t, hostile, args...); got != want {
			t.Errorf("git %s says %q in a hostile environment, %q else", strings.Join(args, " "), got, want)
		}
	}
	must(t, hostile, "commit", "-q", "--allow-empty", "-m", "two")
	if got := must(t, git, "log", "--format=%an %s"); got != "Ann two\nAnn one" {
		t.Errorf("the commits are %q", got)
	}
	if got := must(t, other, "log", "--format=%s"); got != "one" {
		t.Errorf("the other repository has %q", got)
	}
	if _, err := os.Stat(config + ".trace"); err == nil {
		t.Error("git wrote a trace")
	}
}

// Hooks of the repository do not run.
func TestHooksDoNotRun(t *testing.T) {
	git, _ := repository(t)
	for _, hook := range []string{"pre-commit", "post-commit", "post-checkout", "reference-transaction"} {
		if err := os.WriteFile(filepath.Join(git.Dir, ".git", "hooks", hook), []byte("#!/bin/sh\ntouch ../ran ran\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	must(t, git, "commit", "-q", "--allow-empty", "-m", "two")
	must(t, git, "checkout", "-q", "-b", "x")
	if got := must(t, git, "status", "--porcelain"); got != "" {
		t.Errorf("the hooks ran: %s", got)
	}
}

// unlocking is a runner under which a lock ends after some failures.
type unlocking struct {
	gitx.Runner
	lock     string
	failures int
	runs     int
}

func (u *unlocking) Run(ctx context.Context, c gitx.Command) (gitx.Output, error) {
	if u.runs++; u.runs > u.failures {
		if err := os.Remove(u.lock); err != nil && !errors.Is(err, os.ErrNotExist) {
			return gitx.Output{}, err
		}
	}
	return u.Runner.Run(ctx, c)
}

// A lock that another git holds is waited for, for a short time, and is never removed.
//
// row J52
func TestLocks(t *testing.T) {
	for _, test := range []struct {
		failures, runs int
		fails          bool
	}{{failures: 1, runs: 2}, {failures: 3, runs: 4}, {failures: 100, runs: 4, fails: true}} {
		git, h := repository(t)
		if err := os.WriteFile(filepath.Join(git.Dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		lock := filepath.Join(git.Dir, ".git", "index.lock")
		if err := os.WriteFile(lock, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		u := &unlocking{Runner: h, lock: lock, failures: test.failures}
		_, err := gitx.Git{Runner: u, Dir: git.Dir}.Output(t.Context(), "add", "file")
		if fails := err != nil; fails != test.fails || u.runs != test.runs {
			t.Errorf("after %d failures: %v after %d runs, want %d", test.failures, err, u.runs, test.runs)
		}
		if test.fails && !strings.Contains(err.Error(), "index.lock': File exists") {
			t.Errorf("it fails with %v", err)
		}
		if _, err := os.Stat(lock); test.fails && err != nil {
			t.Errorf("the lock of another git was removed: %v", err)
		}
	}
}

// A worktree that another git is about to make is waited for.
func TestAWorktreeAtItsBeginning(t *testing.T) {
	git, h := repository(t)
	must(t, git, "worktree", "add", "-q", "-b", "x", filepath.Join(t.TempDir(), "x"))
	file := filepath.Join(git.Dir, ".git", "worktrees", "x", "commondir")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u := &completing{Runner: h, file: file, failures: 2}
	if _, err := (gitx.Git{Runner: u, Dir: git.Dir}).Output(t.Context(), "worktree", "list"); err != nil || u.runs != 3 {
		t.Errorf("%v after %d runs", err, u.runs)
	}
}

// completing is a runner under which the file commondir of a worktree is complete after some failures.
type completing struct {
	gitx.Runner
	file           string
	failures, runs int
}

func (c *completing) Run(ctx context.Context, cmd gitx.Command) (gitx.Output, error) {
	if c.runs++; c.runs > c.failures {
		if err := os.WriteFile(c.file, []byte("../..\n"), 0o600); err != nil {
			return gitx.Output{}, err
		}
	}
	return c.Runner.Run(ctx, cmd)
}

// Another failure is told at once.
func TestOtherFailuresAreToldAtOnce(t *testing.T) {
	git, h := repository(t)
	u := &unlocking{Runner: h}
	_, err := gitx.Git{Runner: u, Dir: git.Dir}.Output(t.Context(), "rev-parse", "--verify", "nothing")
	if gitx.Status(err) != 128 || u.runs != 1 || !strings.Contains(err.Error(), "git rev-parse: ") {
		t.Errorf("%v after %d runs", err, u.runs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := git.Output(ctx, "status"); err == nil || gitx.Status(err) > 0 {
		t.Errorf("a command without time says %v", err)
	}
}

// Options come before the name of a command, and an error names the command.
func TestOptionsComeBeforeTheCommand(t *testing.T) {
	git, _ := repository(t)
	git.Options = []string{"-c", "user.name=Eve", "--git-dir=" + filepath.Join(git.Dir, ".git")}
	if got := must(t, git, "config", "--get", "user.name"); got != "Eve" {
		t.Errorf("the user is %q", got)
	}
	if _, err := git.Output(t.Context(), "cat-file", "blob", "HEAD"); err == nil || !strings.HasPrefix(err.Error(), "git cat-file: ") {
		t.Errorf("it fails with %v", err)
	}
}

// Where git is not installed it has said nothing: that is no status of its own, which some callers take for a no.
func TestGitIsMissing(t *testing.T) {
	git, h := repository(t)
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	if err := os.Symlink(sh, filepath.Join(empty, "sh")); err != nil {
		t.Fatal(err)
	}
	git.Runner = here{env: append(h.env, "PATH="+empty)}
	_, err = git.Output(t.Context(), "rev-parse", "--verify", "-q", "refs/heads/main")
	if !errors.Is(err, gitx.ErrMissing) || gitx.Status(err) != -1 {
		t.Errorf("without git: %v, status %d; want %v and no status", err, gitx.Status(err), gitx.ErrMissing)
	}
}
