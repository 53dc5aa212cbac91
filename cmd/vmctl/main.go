// vmctl reconciles virtual machines with checked-in HCL files.
package main

import (
	"context"
	"crypto/rand"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/term"

	"vmctl/cmd/internal/cli"
)

var version = "unknown"

func main() { os.Exit(run()) }

// run is vmctl. The first signal ends the context, so that what is under way
// ends safely; the second leaves at once, and the journal covers it.
func run() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(130)
	}()
	// A reader that leaves does not end an apply: writing to it is an error then.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	dir, err := os.Getwd()
	if err != nil {
		dir = string(os.PathSeparator)
	}
	program, err := os.Executable()
	if err != nil {
		program = ""
	}
	return cli.Main(ctx, cli.Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Terminal: terminal(),
		Environ: os.Environ(), Dir: dir, UID: os.Getuid(), Program: program, Now: time.Now, Rand: rand.Reader,
		Build: cli.Build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH},
	})
}

// terminal says which of the streams are terminals.
func terminal() cli.Terminal {
	is := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) } //nolint:gosec // a file descriptor fits
	t := cli.Terminal{In: is(os.Stdin), Out: is(os.Stdout), Err: is(os.Stderr)}
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && t.Columns == 0 { //nolint:gosec // see above
			t.Columns = columns
		}
	}
	return t
}
