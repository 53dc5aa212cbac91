package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/moby/moby/client"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/clock"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

var (
	_ providers.Host          = (*Objects)(nil)
	_ providers.Guest         = containerGuest{}
	_ providers.TerminalGuest = containerGuest{}
)

// Enter implements providers.Host: the inside of a container that runs. It lasts as long as the way to the engine.
func (p *Objects) Enter(_ context.Context, o providers.Object, _ cty.Value) (providers.Guest, error) {
	id := ctyread.Text(o.Attrs, "container_id")
	if o.Kind != spec.Container || !isID(id) {
		return nil, fmt.Errorf("enter %s %s: only a container has an inside", o.Kind, o.Name)
	}
	return containerGuest{p: p, id: id, name: o.Name}, nil
}

// containerGuest is the inside of a container. An engine has no request that ends a command: when ctx ends, the
// command's input and outputs are closed.
type containerGuest struct {
	p        *Objects
	id, name string
}

// Run implements providers.Guest.
func (g containerGuest) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	return g.run(ctx, nil, c)
}

// RunOn implements providers.TerminalGuest.
func (g containerGuest) RunOn(ctx context.Context, t providers.Terminal, c providers.Command) (providers.Output, error) {
	return g.run(ctx, t, c)
}

// Dial implements providers.Guest.
func (g containerGuest) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, fmt.Errorf("connect to a server in container %s: an engine leads to ports that are published only", g.name)
}

// Close implements providers.Guest.
func (containerGuest) Close() error { return nil }

func (g containerGuest) run(ctx context.Context, t providers.Terminal, c providers.Command) (providers.Output, error) {
	if err := c.Valid(); err != nil {
		return providers.Output{}, err
	}
	id, err := g.prepare(ctx, t, c)
	if err != nil {
		return providers.Output{}, refusal(err, "run %q in container %s", c.Args[0], g.name)
	}
	answer, err := g.p.c.ExecAttach(ctx, id, client.ExecAttachOptions{TTY: t != nil, ConsoleSize: size(t)})
	if err != nil {
		return providers.Output{}, &providers.FateError{Program: c.Args[0], Err: err}
	}
	x := execution{p: g.p, id: id, program: c.Args[0], answer: answer}
	return x.run(ctx, t, c)
}

// prepare makes the engine ready to run a command. It does not run it yet.
func (g containerGuest) prepare(ctx context.Context, t providers.Terminal, c providers.Command) (string, error) {
	if err := g.p.c.ready(ctx); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	made, err := g.p.c.ExecCreate(ctx, g.id, client.ExecCreateOptions{
		TTY: t != nil, ConsoleSize: size(t), AttachStdin: c.Stdin != nil, AttachStdout: true, AttachStderr: true,
		Env: c.Env, WorkingDir: c.Dir, Cmd: c.Args,
	})
	if err == nil && !isID(made.ID) {
		err = fmt.Errorf("the engine's ID of the command is %.70q", made.ID)
	}
	return made.ID, err
}

// size returns the size of a terminal; zero: there is none, or it is not known.
func size(t providers.Terminal) client.ConsoleSize {
	if t == nil {
		return client.ConsoleSize{}
	}
	columns, rows, err := t.Size()
	if err != nil || columns <= 0 || rows <= 0 {
		return client.ConsoleSize{}
	}
	return client.ConsoleSize{Height: uint(rows), Width: uint(columns)}
}

// execution is a command that a container runs.
type execution struct {
	p       *Objects
	id      string // the engine's own, of the command
	program string
	answer  client.ExecAttachResult
}

// run passes the input and the outputs until the command has ended, and returns its status.
func (x execution) run(ctx context.Context, t providers.Terminal, c providers.Command) (providers.Output, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, x.answer.Close)()
	defer x.answer.Close()
	if t != nil {
		followed := make(chan struct{})
		defer func() { cancel(nil); <-followed }()
		go func() {
			defer close(followed)
			resize := x.resizer(ctx)
			if columns, rows, err := t.Size(); err == nil { // an engine before API 1.42 took no size at the start
				_ = resize(columns, rows) //nolint:errcheck // the next change of the size is told, too
			}
			t.FollowSize(ctx, resize)
		}()
	}
	if c.Stdin != nil {
		go func() { // it may wait for input when the command has ended
			if err := x.send(c.Stdin); err != nil {
				cancel(err)
			}
		}()
	}
	out, end := &beginning{w: orDiscard(c.Stdout)}, &ending{w: orDiscard(c.Stderr)}
	err := copyOutput(x.answer.Reader, t != nil, out, end)
	status := 0
	if err == nil && ctx.Err() == nil {
		status, err = x.status(ctx)
	}
	if status == cannotExecute && out.saysNoProgram() {
		status = noProgram
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return providers.Output{}, &providers.FateError{Program: x.program, Err: err}
	}
	return providers.Output{Status: status, Stderr: string(end.text)}, nil
}

// send sends the input, and its end in this one direction: the output goes on. Its error is the input's own.
func (x execution) send(input io.Reader) error {
	half, ok := x.answer.Conn.(client.CloseWriter)
	if !ok {
		return errors.New("the way to the engine cannot pass the end of the input on")
	}
	read := &source{r: input}
	if _, err := io.Copy(x.answer.Conn, read); read.err != nil || err != nil { // the rest is not wanted if the command has ended
		return read.err
	}
	_ = half.CloseWrite() //nolint:errcheck // the command has ended, or the output fails, too
	return nil
}

// source reads from r, and keeps its error.
type source struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = fmt.Errorf("read the input: %w", err)
	}
	return n, err
}

// resizer returns a function that gives the command's terminal another size. It fails where no later one would succeed.
func (x execution) resizer(ctx context.Context) func(columns, rows int) error {
	return func(columns, rows int) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		_, err := x.p.c.ExecResize(ctx, x.id, client.ExecResizeOptions{Height: uint(max(rows, 0)), Width: uint(max(columns, 0))})
		return err
	}
}

// status returns the exit status of the command, whose outputs have ended. If it goes on for long after that, the way to
// its outputs was lost.
func (x execution) status(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, errors.New("its outputs ended, and it still runs"))
	defer cancel()
	for {
		var now struct {
			Running  *bool
			ExitCode *int
		}
		if err := x.p.c.getInto(ctx, "/exec/"+x.id+"/json", &now); err != nil {
			return 0, err
		}
		switch {
		case now.Running == nil:
			return 0, errors.New("the engine does not say whether it has ended")
		case !*now.Running && now.ExitCode != nil:
			return *now.ExitCode, nil
		}
		if clock.Sleep(ctx, 50*time.Millisecond) != nil {
			return 0, context.Cause(ctx)
		}
	}
}

// The exit statuses of a program that was not executed, as in a shell.
const (
	cannotExecute = 126
	noProgram     = 127
)

// beginning passes a text on, and keeps the beginning of it.
type beginning struct {
	w    io.Writer
	text []byte
}

// Write implements io.Writer.
func (b *beginning) Write(text []byte) (int, error) {
	const most = 1024
	b.text = append(b.text, text[:min(len(text), most-len(b.text))]...)
	return b.w.Write(text)
}

// saysNoProgram reports whether a text is an engine's message that a program does not exist, to which it gives the
// status of one that cannot be executed.
func (b *beginning) saysNoProgram() bool {
	text := string(b.text)
	return strings.HasPrefix(text, "OCI runtime exec failed") &&
		(strings.Contains(text, "executable file not found") || strings.Contains(text, "no such file or directory"))
}

// ending passes a text on, and keeps the end of it.
type ending struct {
	w    io.Writer
	text []byte
}

// Write implements io.Writer.
func (e *ending) Write(b []byte) (int, error) {
	e.text = append(e.text, b...)
	e.text = e.text[max(0, len(e.text)-providers.StderrLimit):]
	return e.w.Write(b)
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}
