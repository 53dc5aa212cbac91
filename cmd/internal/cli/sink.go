package cli

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"vmctl/cmd/internal/view"
)

// sink is a stream that may go away: after the first error nothing more is
// written, and writing never fails. Work goes on without its reader.
type sink struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		_, s.err = s.w.Write(p)
	}
	return len(p), nil
}

// keep remembers the first error.
func (s *sink) keep(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// problem is the first error. A reader that closed its end had enough: that is
// none.
func (s *sink) problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil || errors.Is(s.err, syscall.EPIPE) || errors.Is(s.err, io.ErrClosedPipe) {
		return nil
	}
	return fmt.Errorf("write to standard output: %w", s.err)
}

// screen is standard output for people.
func (a *app) screen() view.Screen { return a.screenOn(a.stdout, a.env.Terminal.Out) }

// errScreen is standard error for people.
func (a *app) errScreen() view.Screen { return a.screenOn(a.stderr, a.env.Terminal.Err) }

// screenOn is what a stream can show: without a terminal, lines of any length
// and no color.
func (a *app) screenOn(w io.Writer, terminal bool) view.Screen {
	dumb := a.getenv("TERM") == "dumb"
	s := view.Screen{W: w, ASCII: dumb, Columns: a.columns()}
	if !terminal {
		return s
	}
	s.Color = !dumb && !a.global.noColor && a.getenv("NO_COLOR") == ""
	if s.Columns == 0 {
		s.Columns = a.env.Terminal.Columns
	}
	return s
}
