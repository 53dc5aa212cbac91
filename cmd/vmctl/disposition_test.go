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

// dispositions runs the tests so that what they start has every signal at its
// default, whatever this program was started to ignore: nohup, a background job of
// a shell and some CI systems ignore SIGINT and SIGHUP, and a child inherits that.
type dispositions struct{ tests *testing.M }

// Run catches what is ignored: a child has what its parent catches at its default.
// The tests themselves still ignore it.
func (d dispositions) Run() int {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	return d.tests.Run()
}

// patience is how long a test lets one run of vmctl go on. It tells what hangs from
// what is slow, and nothing passes or fails by it otherwise.
const patience = 50 * time.Second

// lessPatience is the variable with another limit for one run.
const lessPatience = "VMCTL_TEST_PATIENCE"

// patiently makes a program of the tests that says what it waits for, and ends,
// when it hangs. A simulated VM lives as long as it is wanted.
func patiently(program func()) func() {
	return func() {
		limit, err := time.ParseDuration(os.Getenv(lessPatience))
		if err != nil {
			limit = patience
		}
		if len(os.Args) < 2 || os.Args[1] != "sim-vm" {
			time.AfterFunc(limit, func() {
				// Perhaps nobody reads what it says.
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
