package wsl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"vmctl/internal/process"
)

const (
	callLimit = 10 * time.Second // of calls without a limit of their own
	endLimit  = 10 * time.Second // the time for a wsl.exe that was forced to end
	mostText  = 1 << 20          // the part of an output that is read (bytes)
)

// statusError is a call of wsl.exe that failed by itself.
type statusError struct {
	said string // its outputs
	err  error
}

func (e *statusError) Error() string { return withOutput(e.err, e.said).Error() }

func (e *statusError) Unwrap() error { return e.err }

// call runs wsl.exe and returns its standard output. At the call's limit it ends wsl.exe with all processes
// below, and the error wraps context.DeadlineExceeded.
func (h Host) call(ctx context.Context, args ...string) (string, error) {
	limit := cmp.Or(limits[args[0]], callLimit)
	if h.Limit != nil {
		limit = h.Limit(args)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	run := h.run
	if h.Played != nil {
		run = h.play
	}
	out, said, err := run(limited, args)
	text, decodeErr := decode(out)
	switch {
	case limited.Err() != nil:
		if ctx.Err() == nil {
			err = fmt.Errorf("it gave no answer within %s: %w", limit, err)
		}
		err = withOutput(err, text+readable(said))
	case errors.As(err, new(*statusError)):
		err = &statusError{said: text + readable(said), err: err}
	case err == nil && decodeErr != nil:
		err = fmt.Errorf("its output: %w", decodeErr)
	}
	if err != nil {
		return "", fmt.Errorf("wsl.exe %s: %w", strings.Join(args, " "), err)
	}
	return text, nil
}

// withOutput returns an error with what wsl.exe said, in one line.
func withOutput(err error, said string) error {
	if words := strings.Fields(said); len(words) > 0 {
		return fmt.Errorf("%w; it said: %s", err, strings.Join(words, " "))
	}
	return err
}

// readable returns an output as far as it is text.
func readable(output []byte) string {
	text, err := decode(output)
	if err != nil {
		return ""
	}
	return text
}

// play lets Played answer. A call that hangs has reached its limit at once.
func (h Host) play(_ context.Context, args []string) (out, said []byte, err error) {
	out, status, hangs := h.Played(args)
	switch {
	case hangs:
		err = context.DeadlineExceeded
	case status != 0:
		err = &statusError{err: fmt.Errorf("exit status %d", status)}
	}
	return out, nil, err
}

// run runs wsl.exe until it ends, or until ctx does. A *statusError means that wsl.exe failed.
func (h Host) run(ctx context.Context, args []string) (out, said []byte, err error) {
	if !h.Exists() {
		return nil, nil, errors.New("this machine has no WSL")
	}
	var pipes [2]struct{ ours, theirs *os.File }
	read := [2]chan []byte{make(chan []byte, 1), make(chan []byte, 1)}
	for i := range pipes {
		if pipes[i].ours, pipes[i].theirs, err = os.Pipe(); err != nil {
			closeAll(pipes[0].ours, pipes[0].theirs)
			return nil, nil, err
		}
	}
	child, err := h.Processes.Start(process.Command{
		Path: h.Program, Args: args, Env: append([]string{"WSL_UTF8=1"}, h.Env...), Stdout: pipes[0].theirs, Stderr: pipes[1].theirs,
	})
	for i := range pipes {
		closeAll(pipes[i].theirs)
		if err != nil {
			closeAll(pipes[i].ours)
			continue
		}
		go func() { read[i] <- readAll(pipes[i].ours) }()
	}
	if err != nil {
		return nil, nil, err
	}
	// The outputs first: until it is collected, it can be ended with all processes that hold them open.
	texts, err := receive(ctx, read)
	if err == nil {
		if err = child.Wait(ctx); err != nil && ctx.Err() == nil {
			err = &statusError{err: errors.Unwrap(err)} // without its pid
		}
	}
	if ctx.Err() != nil {
		texts, err = end(ctx, child, read)
		err = errors.Join(context.Cause(ctx), err)
	}
	return texts[0], texts[1], err
}

// end forces a wsl.exe that gave no answer to end, with all processes below, waits for that, and returns its
// outputs.
func end(ctx context.Context, child *process.Child, read [2]chan []byte) (texts [2][]byte, err error) {
	forced := child.Force()
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	if err := child.Wait(own); own.Err() != nil { // else it only says how it ended
		forced = errors.Join(forced, err)
	}
	// A reader that outlives this call has a process of somebody else at its other end.
	texts, err = receive(own, read)
	return texts, errors.Join(forced, err)
}

// receive returns both outputs, or fails with the end of ctx.
func receive(ctx context.Context, read [2]chan []byte) (texts [2][]byte, err error) {
	for i := range read {
		select {
		case texts[i] = <-read[i]:
			read[i] <- texts[i] // for another reader
		case <-ctx.Done():
			return texts, fmt.Errorf("its output has no end: %w", context.Cause(ctx))
		}
	}
	return texts, nil
}

func readAll(f *os.File) []byte {
	defer closeAll(f)
	text, _ := io.ReadAll(io.LimitReader(f, mostText)) //nolint:errcheck // half an output is refused
	_, _ = io.Copy(io.Discard, f)                      //nolint:errcheck // so that it never waits for a reader
	return text
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() //nolint:errcheck // it was read, or is the other process's
		}
	}
}
