// Package gitx is the only place that runs git: on this host and inside of VMs, through a runner that the caller
// has. No variable of the caller's environment and no hook of a repository has an effect on what it runs.
package gitx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Command is a command for a runner.
type Command struct {
	Args   []string
	Dir    string
	Stdin  io.Reader // nil: none
	Stdout io.Writer // nil: it is discarded
}

// Output tells how a command ended.
type Output struct {
	Status int
	Stderr string
}

// Runner runs a command where the repository is. An error means that it is not known what the command did.
type Runner interface {
	Run(ctx context.Context, c Command) (Output, error)
}

// Git runs git in a folder.
type Git struct {
	Runner  Runner
	Dir     string   // a folder of the repository; "": the runner's own
	Options []string // come before the name of each command, as --git-dir does
}

// Error reports that git ended with a status other than 0.
type Error struct {
	Args   []string
	Status int
	Stderr string
}

// Error names the command, and what git said.
func (e *Error) Error() string {
	verb := "git"
	if len(e.Args) > 0 {
		verb += " " + e.Args[0]
	}
	said := strings.TrimSpace(e.Stderr)
	if said == "" {
		return fmt.Sprintf("%s: status %d", verb, e.Status)
	}
	return verb + ": " + said
}

// ErrMissing is the error of every command where git is not installed. It is no answer of git: nothing is known.
var ErrMissing = errors.New("git is not installed there (on Debian: apt-get install git)")

// noCommand is the status with which a shell ends that does not find git. Git itself never ends with it.
const noCommand = 127

// Status returns the exit status of git in an error; -1: the error is another one.
func Status(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return -1
}

// Limit is the longest time that a git command may take, a transfer included.
const Limit = 30 * time.Minute

// Output returns what git prints, without a line end at its end. A lock that another git holds for less than
// a quarter of a second is waited for, as is a worktree that it is about to make.
func (g Git) Output(ctx context.Context, args ...string) (string, error) {
	out, err := g.Filter(ctx, nil, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// Filter returns what git prints for an input. nil: it has none.
func (g Git) Filter(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	var out bytes.Buffer
	for _, wait := range append(retries(), 0) {
		out.Reset()
		var in io.Reader
		if input != nil {
			in = bytes.NewReader(input)
		}
		err := g.Stream(ctx, in, &out, args...)
		var failed *Error
		if err == nil || wait == 0 || !errors.As(err, &failed) || !isLock(failed.Stderr) {
			return out.Bytes(), err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	panic("unreachable")
}

// Stream runs git once, with an input and an output of any length.
func (g Git) Stream(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	o, err := g.Runner.Run(ctx, Command{Args: Args(append(slices.Clone(g.Options), args...)...), Dir: g.Dir, Stdin: in, Stdout: out})
	switch {
	case err != nil:
		return fmt.Errorf("git %s: %w", args[0], err)
	case o.Status == noCommand:
		return fmt.Errorf("git %s: %w", args[0], ErrMissing)
	case o.Status != 0:
		return &Error{Args: args, Status: o.Status, Stderr: o.Stderr}
	}
	return nil
}

// Args returns the command that runs git with some arguments, without the variables that lead git elsewhere.
func Args(args ...string) []string {
	all := []string{"sh", "-c", Scrub + `exec git "$@"`, "git"}
	return append(append(all, Settings()...), args...)
}

// Scrub is the beginning of a POSIX shell script in which git runs: it drops each variable whose name begins
// with GIT_, such as GIT_DIR, GIT_CONFIG_GLOBAL and GIT_SSH_COMMAND, and lets git ask nobody. It starts no program: each command of git would pay for it.
const Scrub = `set -f
for v in $(export -p); do
  v=${v%%=*}
  case $v in GIT_*[!A-Za-z0-9_]*) ;; GIT_*) unset "$v" ;; esac
done
set +f
GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0 GIT_NO_REPLACE_OBJECTS=1 GIT_LITERAL_PATHSPECS=1 LC_ALL=C
export GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS GIT_NO_REPLACE_OBJECTS GIT_LITERAL_PATHSPECS LC_ALL
`

// Settings returns the options that come before the name of every git command: a repository's hooks and its monitor
// of files are not run.
func Settings() []string {
	return []string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"}
}

// retries lists the waits before each further attempt to get a lock.
func retries() []time.Duration {
	return []time.Duration{50 * time.Millisecond, 75 * time.Millisecond, 100 * time.Millisecond}
}

// isLock reports whether git failed because another git is at work: it holds a lock of the repository, or is about to make a
// worktree, whose file commondir is still empty.
func isLock(stderr string) bool {
	return strings.Contains(stderr, ".lock': File exists") || strings.Contains(stderr, "Another git process seems to be running") ||
		strings.Contains(stderr, "failed to read ") && strings.Contains(stderr, "/commondir")
}
