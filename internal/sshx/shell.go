package sshx

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/crypto/ssh"
	"golang.org/x/term"
)

// Terminal holds the input, the outputs and the terminal type of an interactive session.
type Terminal struct {
	In       *os.File  // put into raw mode and restored if it is a terminal
	Out, Err io.Writer // written to side by side
	Type     string    // TERM; "" is xterm
}

// Shell runs the user's login shell on the target, with a terminal if In is
// one, and returns its exit status like Run.
func Shell(ctx context.Context, t Target, terminal Terminal) (int, error) {
	client, err := t.dial(ctx)
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
	fd := int(terminal.In.Fd())
	if term.IsTerminal(fd) {
		width, height, err := term.GetSize(fd)
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
		cooked, err := term.MakeRaw(fd)
		if err != nil {
			return err
		}
		defer func() {
			if restored := term.Restore(fd, cooked); err == nil {
				err = restored
			}
		}()
		follow, cancel := context.WithCancel(ctx)
		followed := make(chan struct{})
		defer func() { cancel(); <-followed }()
		go func() { defer close(followed); followSize(follow, s, fd) }()
	}
	if err := s.Shell(); err != nil {
		return err
	}
	return s.Wait()
}
