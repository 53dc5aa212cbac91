//go:build unix

package sshx

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// followSize tells the session about every new size of the terminal, until ctx
// ends.
func followSize(ctx context.Context, s *ssh.Session, fd int) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	defer signal.Stop(changed)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		width, height, err := term.GetSize(fd)
		if err != nil {
			continue
		}
		if err := s.WindowChange(height, width); err != nil {
			return
		}
	}
}
