package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"vmctl/cmd/internal/view"
)

// sink is a stream whose reader may be slow, asleep or gone. Writing to it never fails: after
// the first error nothing more is written. A writer waits for the reader until the sink is
// loosened. From then on the sink keeps the bytes until the reader takes them, and the writer
// goes on at once.
type sink struct {
	w        io.Writer
	terminal bool

	mu      sync.Mutex
	region  view.Region   // at the bottom of a terminal
	pending []byte        // accepted, and not given to w yet
	settled chan struct{} // closed once nothing is pending; nil: nothing is pending
	stopped chan struct{} // closed by loosen
	closed  bool          // nothing more is accepted
	err     error
}

func newSink(w io.Writer, terminal bool) *sink {
	return &sink{w: w, terminal: terminal, stopped: make(chan struct{})}
}

// newSinks makes the sinks of both streams. Where both are one file, they are
// one sink: one writer owns a terminal, and what is written keeps its order.
func newSinks(env Env) (stdout, stderr *sink) {
	stdout = newSink(env.Stdout, env.Terminal.Out)
	if sameFile(env.Stdout, env.Stderr) {
		return stdout, stdout
	}
	return stdout, newSink(env.Stderr, env.Terminal.Err)
}

func sameFile(a, b io.Writer) bool {
	one, ok := a.(*os.File)
	other, also := b.(*os.File)
	if !ok || !also {
		return false
	}
	first, err := one.Stat()
	second, problem := other.Stat()
	return err == nil && problem == nil && os.SameFile(first, second)
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.accept(s.region.Above(p))
	settled := s.settled
	s.mu.Unlock()
	if settled != nil {
		select {
		case <-settled:
		case <-s.stopped:
		}
	}
	return len(p), nil
}

// failing is a sink whose writes fail once the reader is gone: it is for the output of a command, which goes on only while
// somebody reads it.
type failing struct{ *sink }

// Write implements io.Writer.
func (f failing) Write(p []byte) (int, error) {
	n, err := f.sink.Write(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	return n, errors.Join(err, f.err)
}

// update writes lines, and shows the running steps if the sink has a region.
func (s *sink) update(lines []byte, now view.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accept(s.region.Update(lines, now))
}

// grow gives the sink a region.
func (s *sink) grow(r view.Region) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.region = r
}

// behind reports whether the reader has not yet taken everything.
func (s *sink) behind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled != nil
}

// accept queues bytes to be written. The caller holds the lock.
func (s *sink) accept(p []byte) {
	if len(p) == 0 || s.closed || s.err != nil {
		return
	}
	s.pending = append(s.pending, p...)
	if s.settled == nil {
		s.settled = make(chan struct{})
		go s.give()
	}
}

// give writes the pending bytes, and returns once there are none. It cannot be woken while a
// reader sleeps: then it lives until the process exits.
func (s *sink) give() {
	for {
		s.mu.Lock()
		batch := s.pending
		s.pending = nil
		if len(batch) == 0 || s.err != nil {
			close(s.settled)
			s.settled = nil
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		_, err := s.w.Write(batch)
		s.keep(err)
	}
}

// loosen ends the waiting of writers, now and from now on.
func (s *sink) stopWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.stopped:
	default:
		close(s.stopped)
	}
}

// drain waits until the reader has taken everything, and reports whether it has. The wait
// ends when the limit has passed after the end of ctx.
func (s *sink) drain(ctx context.Context, limit time.Duration) bool {
	s.mu.Lock()
	settled := s.settled
	s.mu.Unlock()
	if settled == nil {
		return true
	}
	select {
	case <-settled:
		return true
	case <-ctx.Done():
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-settled:
		return true
	case <-late.C:
		return false
	}
}

// close erases the region. The sink accepts nothing after it.
func (s *sink) close() {
	s.update(nil, view.Frame{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// keep remembers the first error.
func (s *sink) keep(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// ended reports whether a write has failed, as when nobody reads any more.
func (s *sink) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// problem returns the first error. It returns nil if the reader closed its end or the
// terminal was closed: they had enough.
func (s *sink) problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := errors.Is(s.err, syscall.EPIPE) || errors.Is(s.err, io.ErrClosedPipe) || s.terminal && errors.Is(s.err, syscall.EIO)
	if s.err == nil || gone {
		return nil
	}
	return fmt.Errorf("write to standard output: %w", s.err)
}

// screen returns the screen of standard output.
func (a *app) screen() view.Screen { return a.screenOn(a.stdout, a.env.Terminal.Out) }

// errScreen returns the screen of standard error.
func (a *app) errScreen() view.Screen { return a.screenOn(a.stderr, a.env.Terminal.Err) }

// screenOn returns the screen of a stream. Without a terminal it has no color, and lines of
// any length unless COLUMNS is set.
func (a *app) screenOn(w io.Writer, terminal bool) view.Screen {
	dumb := a.getenv("TERM") == "dumb"
	s := view.Screen{W: w, ASCII: dumb, Columns: a.columns()}
	if !terminal {
		return s
	}
	s.Color = !dumb && !a.global.noColor && a.getenv("NO_COLOR") == ""
	if s.Columns == 0 {
		s.Columns, _ = a.env.Terminal.size()
	}
	return s
}

// region returns the region at the bottom of standard output that shows running steps. ok is
// false without a terminal, or with one that is too simple.
func (a *app) region() (r view.Region, ok bool) {
	t := a.env.Terminal
	if name := a.getenv("TERM"); !t.Out || name == "" || name == "dumb" || t.Size == nil {
		return r, false
	}
	if columns, rows := t.Size(); columns == 0 || rows == 0 {
		return r, false
	}
	return view.Region{Size: t.Size, Color: a.screen().Color}, true
}
