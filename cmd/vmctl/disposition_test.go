package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dispositions runs the tests so that their child processes have every signal at its default,
// even if this program was started to ignore it: nohup, a background job of a shell and some
// CI systems ignore SIGINT and SIGHUP, and a child inherits that.
type dispositions struct{ tests *testing.M }

// Run catches the ignored signals: a child has them at their default if its parent catches
// them. The tests themselves still ignore them.
func (d dispositions) Run() int {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	return d.tests.Run()
}

// patience is the time limit of a test for one run of vmctl. It only separates a hang from
// slowness: no test passes or fails by it otherwise.
const patience = 10 * time.Minute

// lessPatience is the environment variable that sets another limit for one run.
const lessPatience = "VMCTL_TEST_PATIENCE"

// patiently wraps a program of the tests: if it hangs, it prints its stacks and ends. A
// simulated VM has no limit.
func patiently(program func()) func() {
	return func() {
		limit, err := time.ParseDuration(os.Getenv(lessPatience))
		if err != nil {
			limit = patience
		}
		if len(os.Args) < 2 || os.Args[1] != "sim-vm" {
			time.AfterFunc(limit, func() {
				// The write may block if nobody reads it.
				time.AfterFunc(time.Second, func() { os.Exit(hung) })
				stacks := make([]byte, 1<<20)
				stacks = stacks[:runtime.Stack(stacks, true)]
				fmt.Fprintf(os.Stderr, "\n%s hangs: it did not end within %s. It waits here:\n\n%s\n", strings.Join(os.Args, " "), limit, stacks)
				os.Exit(hung)
			})
		}
		program()
	}
}

// hung is the exit code of a program of the tests that hangs. vmctl has no such code.
const hung = 99
