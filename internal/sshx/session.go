package sshx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/crypto/ssh"
	"golang.org/x/term"
)

// runOn runs one session and closes the client, at the latest when ctx ends.
func runOn(ctx context.Context, client *ssh.Client, run func(*ssh.Session) error) (status int, err error) {
	stop := context.AfterFunc(ctx, func() { closeQuietly(client) })
	defer func() {
		if stop() {
			closeQuietly(client)
		}
	}()
	session, err := client.NewSession()
	if err != nil {
		return 0, err
	}
	status, err = ExitStatus(run(session))
	if err != nil && ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return status, err
}

// ExitStatus returns the exit status of a command from the error that its session ended with. A
// command that a signal ended has status 128 plus the signal's number, as in a shell. An error
// means that its end is not known.
func ExitStatus(err error) (int, error) {
	var exit *ssh.ExitError
	var missing *ssh.ExitMissingError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.Signal() != "":
		return 128 + signals[exit.Signal()], nil
	case errors.As(err, &exit):
		return exit.ExitStatus(), nil
	case errors.As(err, &missing):
		return 0, errors.New("the connection was lost before the command ended")
	default:
		return 0, err
	}
}

// Terminal holds the input, the outputs and the terminal type of an interactive session.
type Terminal struct {
	In       *os.File  // put into raw mode and restored if it is a terminal
	Out, Err io.Writer // written to side by side
	Type     string    // TERM; "" is xterm
	Line     string    // what the user's login shell runs; "": it is interactive
}

// Shell runs the user's login shell on the target, or a line by it, with a terminal if In is
// one, and returns its exit status like Run.
func Shell(ctx context.Context, t Target, terminal Terminal) (int, error) {
	client, err := t.Connect(ctx)
	if err != nil {
		return 0, fmt.Errorf("open a shell as %s: %w", t, err)
	}
	status, err := runOn(ctx, client, func(s *ssh.Session) error { return shell(ctx, s, terminal) })
	if err != nil {
		return 0, fmt.Errorf("open a shell as %s: %w", t, err)
	}
	return status, nil
}

func shell(ctx context.Context, s *ssh.Session, terminal Terminal) (err error) {
	s.Stdin, s.Stdout, s.Stderr = terminal.In, terminal.Out, terminal.Err
	if term.IsTerminal(int(terminal.In.Fd())) {
		raw, err := MakeRaw(terminal.In)
		if err != nil {
			return err
		}
		defer func() {
			if restored := raw.Restore(); err == nil {
				err = restored
			}
		}()
		width, height, err := raw.Size()
		if err != nil {
			return err
		}
		name := terminal.Type
		if name == "" {
			name = "xterm"
		}
		if err := s.RequestPty(name, height, width, ssh.TerminalModes{ssh.ECHO: 1}); err != nil {
			return err
		}
		follow, cancel := context.WithCancel(ctx)
		followed := make(chan struct{})
		defer func() { cancel(); <-followed }()
		go func() {
			defer close(followed)
			raw.FollowSize(follow, func(columns, rows int) error { return s.WindowChange(rows, columns) })
		}()
	}
	begin := s.Shell
	if terminal.Line != "" {
		begin = func() error { return s.Start(terminal.Line) }
	}
	if err := begin(); err != nil {
		return err
	}
	return s.Wait()
}
