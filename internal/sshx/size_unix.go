//go:build unix

package sshx

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// FollowSize calls resized with every new size of the terminal, until ctx ends or resized fails.
func (r *Raw) FollowSize(ctx context.Context, resized func(columns, rows int) error) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	defer signal.Stop(changed)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		columns, rows, err := r.Size()
		if err != nil {
			continue
		}
		if err := resized(columns, rows); err != nil {
			return
		}
	}
}
