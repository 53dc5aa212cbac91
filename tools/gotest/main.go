// Gotest runs go test so that its output can be read while it runs and after it failed. It prints a line for each package
// as that ends, the output of failed tests alone, and at the end the slowest tests, the skipped ones with their reasons
// and, last of all, the last lines of each failed test. Tests that say nothing for too long are named and ended.
//
// usage: gotest [-list FILE] [-silence DURATION] -- ARGUMENT...
//
// The arguments are those of go test. FILE gets the name and the result of each test. The exit status is that of go test.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	os.Exit(code)
}

// errUsage says that the arguments could not be read; the flag package has said why.
var errUsage = errors.New("usage: gotest [-list FILE] [-silence DURATION] -- the arguments of go test")

// run returns the exit status for the process: that of go test, or 2 where it could not be run.
func run(ctx context.Context, args []string, out io.Writer) (int, error) {
	flags := flag.NewFlagSet("gotest", flag.ContinueOnError)
	flags.SetOutput(out)
	list := flags.String("list", "", "write the name and result of each test to this file")
	silence := flags.Duration("silence", 15*time.Minute, "end the tests when none has said anything for this long")
	if err := flags.Parse(args); err != nil {
		return 2, errUsage
	}
	board := newBoard(out)
	command := exec.Command("go", append([]string{"test", "-json"}, flags.Args()...)...)
	command.Stdout = board
	command.Stderr = os.Stderr
	command.WaitDelay = 10 * time.Second // a process that a test left behind may hold the pipe
	if err := command.Start(); err != nil {
		return 2, fmt.Errorf("run go test: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	err := board.watch(ctx, *silence, command.Process.Pid, ended)
	board.conclude()
	if *list != "" {
		if written := os.WriteFile(*list, []byte(board.list()), 0o644); written != nil {
			return 2, fmt.Errorf("write the list of tests: %w", written)
		}
	}
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed) && failed.ExitCode() > 0:
		return failed.ExitCode(), nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return 1, fmt.Errorf("go test: %w", err)
	case board.failures() > 0:
		return 1, nil
	}
	return 0, nil
}

// watch returns when go test has ended. Each minute without an ended package names the running tests, and a silence of all
// tests ends them: the Go programs among them print their goroutines first.
func (b *board) watch(ctx context.Context, silence time.Duration, pid int, ended <-chan error) error {
	const ask = time.Minute // from the request to print goroutines to the end by force
	ticks := time.NewTicker(min(time.Minute, silence/4))
	defer ticks.Stop()
	var asked time.Time
	for {
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			signalAll(pid, os.Interrupt, everyProcess)
			ctx = context.WithoutCancel(ctx)
		case now := <-ticks.C:
			switch idle := b.idle(now); {
			case !asked.IsZero() && now.Sub(asked) > ask:
				signalAll(pid, os.Kill, everyProcess)
			case !asked.IsZero():
			case idle > silence:
				asked = now
				b.say("== no test said anything for %s; running: %s\n%s", idle.Round(time.Second), b.running(now), tree(pid))
				signalAll(pid, quit, isTest)
			default:
				b.remind(now)
			}
		}
	}
}

// process is a line of ps.
type process struct {
	pid, parent int
	args        string
}

func everyProcess(process) bool { return true }

// isTest reports whether p runs the program of a package's tests.
func isTest(p process) bool {
	program, _, _ := strings.Cut(p.args, " ")
	return strings.HasSuffix(program, ".test")
}

// descendants lists the processes below pid, parents first.
func descendants(pid int) []process {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=").Output()
	if err != nil {
		return nil
	}
	children := map[int][]process{}
	for line := range strings.Lines(string(out)) {
		var p process
		if _, err := fmt.Sscan(line, &p.pid, &p.parent); err == nil {
			p.args = strings.Join(strings.Fields(line)[2:], " ")
			children[p.parent] = append(children[p.parent], p)
		}
	}
	var found []process
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			found = append(found, p)
			next = append(next, p.pid)
		}
	}
	return found
}

// tree shows the processes below pid, a line each.
func tree(pid int) string {
	var lines strings.Builder
	for _, p := range descendants(pid) {
		fmt.Fprintf(&lines, "  %d (of %d) %.150s\n", p.pid, p.parent, p.args)
	}
	return lines.String()
}

// signalAll sends s to the processes below pid that wanted accepts, children first.
func signalAll(pid int, s os.Signal, wanted func(process) bool) {
	for _, p := range slices.Backward(descendants(pid)) {
		if found, err := os.FindProcess(p.pid); err == nil && wanted(p) {
			_ = found.Signal(s) //nolint:errcheck // it may have ended
		}
	}
}
