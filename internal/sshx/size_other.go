//go:build !unix

package sshx

import "context"

// FollowSize waits for the end of ctx: no signal tells of a new size here.
func (r *Raw) FollowSize(ctx context.Context, _ func(columns, rows int) error) { <-ctx.Done() }
