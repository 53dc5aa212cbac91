//go:build !unix

package sshx

import (
	"context"

	"golang.org/x/crypto/ssh"
)

// followSize does nothing where no signal tells of a new size.
func followSize(ctx context.Context, _ *ssh.Session, _ int) { <-ctx.Done() }
