// vmctl reconciles virtual machines with checked-in HCL files.
package main

import (
	"context"
	"crypto/rand"
	"os"
	accounts "os/user"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/term"

	"vmctl/cmd/internal/cli"
)

var version = "unknown"

func main() {
	start(cli.Env{})
}

// start runs vmctl as run does, and exits.
func start(env cli.Env) {
	collectRarely()
	os.Exit(run(env))
}

// collectRarely lets the heap grow to five times the memory in use before it is collected, but not
// beyond heapLimit bytes, as long as less than that is in use. A plan of 3,000
// resources keeps most of what it makes: with Go's default a third of its CPU time went into
// collections. GOGC and GOMEMLIMIT of the environment win.
func collectRarely() {
	const (
		percent   = 400
		heapLimit = 5 << 28
	)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapLimit)
	}
}

// run runs vmctl in this process and returns its exit code. Of env it takes what a process does not
// tell: the kinds that its caller adds.
func run(env cli.Env) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	leave := make(chan struct{})
	shared := newLending()
	obeySignals(shared, cancel, func() { close(leave) })
	dir, err := os.Getwd()
	if err != nil {
		dir = string(os.PathSeparator)
	}
	program, err := os.Executable()
	if err != nil {
		program = ""
	}
	environ := os.Environ()
	cli.HideVariables(environ)
	restore := terminalModes(os.Stdin)
	code := cli.Main(ctx, cli.Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Terminal: terminal(),
		Environ: environ, Dir: dir, UID: os.Getuid(), Program: program, Now: time.Now, Rand: rand.Reader,
		Build: cli.Build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH},
		Lend:  shared.lend, Leave: leave, HomeOf: homeOf, Inside: env.Inside,
	})
	select {
	case <-leave:
		restore()
	default:
	}
	return code
}

// homeOf returns the home directory of a user, "" if there is no such user.
func homeOf(name string) string {
	u, err := accounts.Lookup(name)
	if err != nil {
		return ""
	}
	return u.HomeDir
}

// terminal returns which of the streams are terminals.
func terminal() cli.Terminal {
	is := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) } //nolint:gosec // a file descriptor fits
	return cli.Terminal{In: is(os.Stdin), Out: is(os.Stdout), Err: is(os.Stderr), Size: terminalSize}
}

// terminalSize returns the size of the terminal that shows standard output, or else standard
// error; 0 without one.
func terminalSize() (columns, rows int) {
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil { //nolint:gosec // a file descriptor fits
			return columns, rows
		}
	}
	return 0, 0
}

// terminalModes returns a function that restores the present modes of a terminal. A shell
// that vmctl leaves in its midst has set others.
func terminalModes(f *os.File) (restore func()) {
	fd := int(f.Fd()) //nolint:gosec // a file descriptor fits
	found, err := term.GetState(fd)
	if err != nil {
		return func() {}
	}
	return func() {
		if now, err := term.GetState(fd); err != nil || *now == *found {
			return
		}
		_ = term.Restore(fd, found) //nolint:errcheck // nobody is left to be told
	}
}
