package main

import (
	"os"
	"os/signal"
	"syscall"
)

// obeySignals calls first at the first signal, so that what is under way ends
// safely, and second at the next one: whoever sends it no longer waits. A signal
// that vmctl was started to ignore (nohup) stays ignored.
func obeySignals(first, second func()) {
	signals := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	// A reader that leaves does not end an apply: writing to it is an error then.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		hungUp := <-signals == syscall.SIGHUP
		first()
		for s := range signals {
			// One hang-up is told twice: by the terminal, and by the shell that ends with it.
			if hungUp && s == syscall.SIGHUP {
				continue
			}
			second()
			return
		}
	}()
}
