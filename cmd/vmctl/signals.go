package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// lending counts the other programs that have the terminal now.
type lending struct {
	programs atomic.Int32
	settled  chan struct{} // receives once all earlier signals were handled
	deaf     chan struct{} // closed when signals are no longer handled
}

func newLending() *lending {
	return &lending{settled: make(chan struct{}, 1), deaf: make(chan struct{})}
}

// lend leaves interrupts from the keyboard to another program, until back is called: the
// terminal sends them to both. An interrupt before that call counts as the other program's,
// even if vmctl has not received it yet: back waits for a signal of its own, which comes
// after it.
func (l *lending) lend() (back func()) {
	l.programs.Add(1)
	return func() {
		for signalSelf() {
			select {
			case <-l.settled:
			case <-l.deaf:
			case <-time.After(time.Second): // it was lost: the queue was full
				continue
			}
			break
		}
		l.programs.Add(-1)
	}
}

// obeySignals calls first at the first signal, so that running steps end safely, and second
// at the next one, from a user who no longer waits. A signal that vmctl was started to ignore
// (nohup) stays ignored. vmctl ignores an interrupt while another program has the terminal.
func obeySignals(terminal *lending, first, second func()) {
	signals := make(chan os.Signal, 16)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	notifyOwn(signals)
	// A reader that leaves does not end an apply: writing returns an error instead.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		defer close(terminal.deaf)
		begun, hungUp := false, false
		for s := range signals {
			if s == ownSignal {
				select {
				case terminal.settled <- struct{}{}:
				default: // nobody waits for it
				}
				continue
			}
			if s == os.Interrupt && terminal.programs.Load() > 0 {
				continue
			}
			if !begun {
				begun, hungUp = true, s == syscall.SIGHUP
				first()
				continue
			}
			// One hang-up comes twice: from the terminal, and from the shell that ends with
			// it.
			if hungUp && s == syscall.SIGHUP {
				continue
			}
			second()
			return
		}
	}()
}
