package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// lending counts who else has the terminal now.
type lending struct{ programs atomic.Int32 }

// lend leaves what is typed to interrupt to another program, until back is called:
// the terminal sends it to both.
func (l *lending) lend() (back func()) {
	l.programs.Add(1)
	return func() { l.programs.Add(-1) }
}

// obeySignals calls first at the first signal, so that what is under way ends
// safely, and second at the next one: whoever sends it no longer waits. A signal
// that vmctl was started to ignore (nohup) stays ignored, and an interrupt is another
// program's while that has the terminal.
func obeySignals(terminal *lending, first, second func()) {
	signals := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	// A reader that leaves does not end an apply: writing to it is an error then.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		begun, hungUp := false, false
		for s := range signals {
			if s == os.Interrupt && terminal.programs.Load() > 0 {
				continue
			}
			if !begun {
				begun, hungUp = true, s == syscall.SIGHUP
				first()
				continue
			}
			// One hang-up is told twice: by the terminal, and by the shell that ends with it.
			if hungUp && s == syscall.SIGHUP {
				continue
			}
			second()
			return
		}
	}()
}
