// Package guest implements providers.Guest: over SSH, and by processes of this host. Both run a
// command in the same way: the program gets its arguments as they are, its streams are copied by
// this process, and an end that was not seen is a *providers.FateError.
package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"vmctl/providers"
)

// errClosed is the reason why a closed guest runs nothing.
var errClosed = fmt.Errorf("the guest was closed: %w", net.ErrClosed)

// visitors counts the calls inside a guest, and ends them when the guest ends. The zero value is
// a guest that is open.
type visitors struct {
	mu      sync.Mutex
	ended   error // why nobody gets in; nil: the guest is open
	calls   int
	cancels map[int]context.CancelCauseFunc // by the number of the call
	inside  sync.WaitGroup
}

// enter begins a call. Its context ends when ctx or the guest does. The caller calls leave.
func (v *visitors) enter(ctx context.Context) (inside context.Context, leave func(), err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended != nil {
		return nil, nil, v.ended
	}
	inside, cancel := context.WithCancelCause(ctx)
	v.calls++
	me := v.calls
	if v.cancels == nil {
		v.cancels = map[int]context.CancelCauseFunc{}
	}
	v.cancels[me] = cancel
	v.inside.Add(1)
	return inside, func() {
		cancel(nil)
		v.mu.Lock()
		delete(v.cancels, me)
		v.mu.Unlock()
		v.inside.Done()
	}, nil
}

// end lets nobody in any more, ends the calls, and returns once they have ended. Only the first
// reason counts.
func (v *visitors) end(why error) {
	v.mu.Lock()
	if v.ended == nil {
		v.ended = why
	}
	for _, cancel := range v.cancels {
		cancel(v.ended)
	}
	v.mu.Unlock()
	v.inside.Wait()
}

// streams copies the input and the outputs of one command.
type streams struct {
	program string
	stdin   *source
	stdout  *sink
	stderr  *sink
	end     *tail           // of stderr
	fail    func(err error) // ends the command
}

func newStreams(c providers.Command, fail func(error)) *streams {
	s := &streams{program: c.Args[0], fail: fail, end: &tail{}}
	s.stdin = &source{r: c.Stdin}
	s.stdout = &sink{w: c.Stdout}
	s.stderr = &sink{w: c.Stderr, also: s.end}
	return s
}

// copyOut copies an output until it ends. If it cannot be written, the rest is read and dropped,
// and the command ended.
func (s *streams) copyOut(to io.Writer, from io.Reader) {
	out := &source{r: from}
	_, err := io.Copy(to, out)
	if err == nil || out.failed != nil {
		return // its end, or that of the connection, which is noticed elsewhere
	}
	s.fail(fmt.Errorf("its output cannot be written: %w", err))
	_, _ = io.Copy(io.Discard, from) //nolint:errcheck // see above
}

// copyIn copies the input until it ends, and closes to. A command need not read its input.
func (s *streams) copyIn(to io.WriteCloser) {
	_, _ = io.Copy(to, s.stdin) //nolint:errcheck // see above
	if s.stdin.failed != nil {
		s.fail(fmt.Errorf("its input cannot be read: %w", s.stdin.failed))
		return // an input that is cut off has no end
	}
	_ = to.Close() //nolint:errcheck // see above
}

// output ends the copying: nothing is written from now on.
func (s *streams) output(status int) providers.Output {
	s.detach()
	return providers.Output{Status: status, Stderr: s.end.String()}
}

func (s *streams) detach() {
	s.stdin.detached.Store(true)
	s.stdout.detach()
	s.stderr.detach()
}

// lost ends the copying, and returns the error of a command whose end was not seen.
func (s *streams) lost(why error) error {
	s.detach()
	return &providers.FateError{Program: s.program, Err: why}
}

// source is an input that remembers why it failed.
type source struct {
	r        io.Reader // nil: it is empty
	failed   error
	detached atomic.Bool
}

// errDetached ends an input that nobody wants any more.
var errDetached = errors.New("the command has ended")

func (s *source) Read(b []byte) (int, error) {
	if s.r == nil {
		return 0, io.EOF
	}
	n, err := s.r.Read(b)
	if s.detached.Load() {
		n, err = 0, errDetached
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = err
	}
	return n, err
}

// sink takes an output until it is detached.
type sink struct {
	also *tail

	mu sync.Mutex
	w  io.Writer // nil: the output is dropped
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.also != nil {
		s.also.add(b)
	}
	if s.w == nil {
		return len(b), nil
	}
	return s.w.Write(b)
}

// detach makes the sink drop whatever comes from now on.
func (s *sink) detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w, s.also = nil, nil
}

// tail keeps the end of a text.
type tail struct{ text []byte }

func (t *tail) add(b []byte) {
	t.text = append(t.text, b[max(0, len(b)-providers.StderrLimit):]...)
	if extra := len(t.text) - providers.StderrLimit; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
}

func (t *tail) String() string { return string(t.text) }
