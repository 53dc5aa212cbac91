package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"vmctl/internal/atomicfile"
	"vmctl/internal/clock"
	"vmctl/internal/process"
	"vmctl/internal/run"
)

// followEvery is the longest time until vmctl reads what Terraform wrote.
const followEvery = 100 * time.Millisecond

// lasting runs a command of Terraform that outlives vmctl if the session has a record for it: a state is written. Its standard output
// is copied to out. input may be nil.
func (s *session) lasting(ctx context.Context, args []string, input *os.File, out io.Writer) (err error) {
	if s.record == "" {
		return s.called(ctx, args, input, out)
	}
	// Files in place of pipes, which end a Terraform that nobody reads.
	output, err := process.InMemory(nil)
	if err != nil {
		return err
	}
	defer output.Close() //nolint:errcheck // a file in memory
	problems, err := process.InMemory(nil)
	if err != nil {
		return err
	}
	defer problems.Close() //nolint:errcheck // a file in memory
	c, err := s.heldCommand(args)
	if err != nil {
		return err
	}
	c.Stdout, c.Stderr = output, problems
	if input != nil {
		c.Stdin = input
	}
	running, done := context.WithCancel(context.WithoutCancel(ctx))
	followed := make(chan error, 1)
	go func() { followed <- follow(running, fromStart(output), out) }()
	_, err = run.Lasting(ctx, c, s.order.Program, func(id process.Identity) error { return s.note(id, args[0]) })
	done()
	if err != nil {
		if text, unread := io.ReadAll(fromStart(problems)); unread == nil && len(text) > 0 {
			err = fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(text)))
		}
	}
	return errors.Join(withoutSecrets(err), <-followed)
}

// heldCommand returns the command that waits at its gate, and becomes Terraform: a shell, or vmctl where that might lose something.
func (s *session) heldCommand(args []string) (run.Command, error) {
	c := run.Command{Env: s.environ(), Dir: s.module}
	var ok bool
	if c.Args, ok = process.ShellGate(s.order.Program, args, c.Env); ok {
		return c, nil
	}
	return s.throughCall(args, order{Program: s.order.Program, Held: true})
}

// throughCall returns the command of a vmctl that becomes Terraform.
func (s *session) throughCall(args []string, o order) (run.Command, error) {
	text, err := json.Marshal(o)
	return run.Command{Args: append([]string{s.p.host.Program}, args...), Env: append(s.environ(), CallVariable+"="+string(text)), Dir: s.module}, err
}

// called runs a command of Terraform that writes files, and ends with vmctl. input may be nil.
func (s *session) called(ctx context.Context, args []string, input *os.File, out io.Writer) error {
	c, err := s.throughCall(args, order{Program: s.order.Program})
	if err != nil {
		return err
	}
	c.Stdout = out
	if input != nil {
		c.Stdin = input
	}
	_, err = run.Bound(ctx, c)
	return withoutSecrets(err)
}

// note records a Terraform before it begins.
func (s *session) note(id process.Identity, command string) error {
	text, err := json.Marshal(running{Process: id, Command: command, Folder: s.around})
	for _, path := range s.records() {
		err = errors.Join(err, atomicfile.Write(path, text, 0o600))
	}
	return err
}

// edit runs a command that edits a state, and tells nothing. input may be nil.
func (s *session) edit(ctx context.Context, args []string, input *os.File) error {
	return unlessCreating(ctx, func() error { return s.lasting(ctx, args, input, io.Discard) })
}

// fromStart reads a file from its start. Whoever writes it goes on where the file is.
func fromStart(file *os.File) io.Reader { return io.NewSectionReader(file, 0, math.MaxInt64) }

// follow copies what is written to a file until ctx ends, and then the rest.
func follow(ctx context.Context, from io.Reader, to io.Writer) error {
	for {
		ended := ctx.Err() != nil
		if _, err := io.Copy(to, from); err != nil || ended {
			return err
		}
		clock.Pause(ctx, followEvery)
	}
}
